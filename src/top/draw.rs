//! Draws the state on a terminal. Every state has a word or a sign; colours repeat it.

use crewlog_executors::crew::Kind;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::border::DOUBLE;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph, Row as TableRow, Table, TableState, Wrap};
use serde_json::json;

use super::shown::{Panel, Tone, described};
use super::state::{Mode, State};
use crate::ui::text::{one_line, rfc3339, visible};

/// The size from which all panels are shown.
const LARGE: (u16, u16) = (110, 30);
/// The most lines of the needs above the other panels, including their frame.
const NEEDS_LINES_MAX: usize = 8;
/// The longest line below the panels, in characters.
const LINE_CHARS_MAX: usize = 1_000;

pub fn draw(state: &State, frame: &mut Frame) {
    let [head, panels, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Fill(1), Constraint::Length(2)]).areas(frame.area());
    let (shown, folder, time) = (&state.shown, one_line(&state.folder, 60), rfc3339(state.shown.time));
    let (when, look) = if state.is_past() { ("PAST", Modifier::REVERSED) } else { ("live", Modifier::empty()) };
    let line = format!("crewlog top  {folder}  {when}: position {}, {}", shown.at, time.get(..19).unwrap_or(&time));
    frame.render_widget(Line::styled(line, look), head);
    let mut within = panels;
    if state.is_past() {
        let title = format!(" PAST: {} of {}; nothing can be changed; L: back to the present ", shown.at, shown.head);
        let around = Block::bordered().border_set(DOUBLE).title(title);
        within = around.inner(panels);
        frame.render_widget(around.border_style(style(state, Tone::Busy)), panels);
    }
    for (panel, area) in places(state, within) {
        draw_panel(state, frame, panel, area);
    }
    match &state.mode {
        Mode::Browse | Mode::Filter => {}
        Mode::Answer { need, .. } | Mode::Confirm { need, .. } => {
            draw_text(frame, "Needs you", &described(json!(need), "text", &["kind", "id"]), 0, within);
        }
        Mode::Read { title, text, line } => draw_text(frame, title, text, *line, within),
    }
    draw_foot(state, frame, foot);
}

/// The places of the panels: all of them, or on a small terminal the needs and one other.
fn places(state: &State, area: Rect) -> Vec<(Panel, Rect)> {
    let n_needs = (state.shown.needs.len() + 2).clamp(3, NEEDS_LINES_MAX);
    let needs_lines = Constraint::Length(u16::try_from(n_needs).unwrap_or(u16::MAX));
    if area.width + 2 < LARGE.0 || area.height + 5 < LARGE.1 {
        let [needs, below] = Layout::vertical([needs_lines, Constraint::Fill(1)]).areas(area);
        let other = if state.focus == Panel::Needs { Panel::Plans } else { state.focus };
        return vec![(Panel::Needs, needs), (other, below)];
    }
    let rows = [needs_lines, Constraint::Fill(3), Constraint::Fill(2), Constraint::Fill(2)];
    let [needs, upper, lower, log] = Layout::vertical(rows).areas(area);
    let [plans, tasks] = Layout::horizontal([Constraint::Fill(2), Constraint::Fill(3)]).areas(upper);
    let [agents, leases] = Layout::horizontal([Constraint::Fill(3), Constraint::Fill(2)]).areas(lower);
    Panel::ALL.iter().copied().zip([needs, plans, tasks, agents, leases, log]).collect()
}

fn widths(panel: Panel) -> Vec<Constraint> {
    use Constraint::{Fill, Length};
    match panel {
        Panel::Needs => vec![Length(10), Length(6), Length(20), Fill(1)],
        Panel::Plans => vec![Fill(2), Length(9), Fill(2), Fill(1)],
        Panel::Tasks => vec![Length(5), Length(8), Length(6), Length(12), Fill(1)],
        Panel::Agents => vec![Length(14), Length(5), Length(8), Length(10), Fill(2), Fill(3)],
        Panel::Leases => vec![Fill(1), Length(14), Length(6), Length(14)],
        Panel::Log => vec![Length(7), Length(8), Length(24), Fill(1)],
    }
}

fn draw_panel(state: &State, frame: &mut Frame, panel: Panel, area: Rect) {
    let rows = state.rows(panel);
    let is_focused = state.focus == panel;
    let of = state.shown.plan.as_ref().filter(|_| panel == Panel::Tasks);
    let of = of.map(|plan| format!(" of {}", one_line(plan, 40))).unwrap_or_default();
    let filter = match state.filter(panel) {
        "" => String::new(),
        filter => format!(" with \"{}\"", one_line(filter, 20)),
    };
    let sign = if is_focused { "*" } else { "" };
    let name: &str = panel.into();
    let title = format!(" {sign}{} {name}{of} ({}){filter} ", panel as usize + 1, rows.len());
    let weight = if is_focused { Modifier::BOLD } else { Modifier::empty() };
    let block = Block::bordered().title(title).title_style(weight);
    if rows.is_empty() {
        let nothing = if filter.is_empty() && panel == Panel::Needs { "nothing waits for you" } else { "none" };
        return frame.render_widget(Paragraph::new(nothing).block(block), area);
    }
    let mut chosen = TableState::default().with_selected(state.chosen(panel, &rows));
    let rows = rows.into_iter().map(|row| TableRow::new(row.cells).style(style(state, row.tone)));
    let table = Table::new(rows, widths(panel)).block(block).highlight_symbol(if is_focused { "> " } else { "  " });
    frame.render_stateful_widget(table.row_highlight_style(weight), area, &mut chosen);
}

fn style(state: &State, tone: Tone) -> Style {
    let colour = match tone {
        Tone::Plain => return Style::new(),
        Tone::Good => Color::Green,
        Tone::Busy => Color::Yellow,
        Tone::Bad => Color::Red,
    };
    if state.has_colour { Style::new().fg(colour) } else { Style::new() }
}

fn draw_text(frame: &mut Frame, title: &str, text: &str, line: u16, area: Rect) {
    let block = Block::bordered().title(format!(" {title} "));
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(text).block(block).wrap(Wrap { trim: false }).scroll((line, 0)), area);
}

/// The last message and the keys, or the line being typed.
fn draw_foot(state: &State, frame: &mut Frame, area: Rect) {
    let note = one_line(&state.note, LINE_CHARS_MAX);
    let (above, below, is_typed) = match &state.mode {
        Mode::Browse if state.is_past() => {
            (note, "[ ] step  { } failures  L present  Enter details  / filter  ? help  q quit".to_owned(), false)
        }
        Mode::Browse => {
            (note, "Tab 1-6 panel  j k move  Enter open  / filter  [ ] past  ? help  q quit".to_owned(), false)
        }
        Mode::Filter => {
            ("Enter: keep the filter; Esc: show all".to_owned(), format!("/{}", state.filter(state.focus)), true)
        }
        Mode::Answer { need, .. } if need.kind == Kind::Permission => {
            (note, format!("{}: y agrees, n refuses, Esc leaves it", need.id), false)
        }
        Mode::Answer { need, text } => {
            let choices = need.choices.join(", ");
            let choices = if choices.is_empty() { choices } else { format!(" ({choices})") };
            let way = need.commands.first().filter(|_| need.commands.len() > 1 && need.choices.is_empty());
            let (asks, tab) =
                way.map_or(("answer", ""), |way| (way.trim_end_matches(" \"...\""), ", Tab: another way"));
            let keys = format!("{note} {}{choices}; Enter sends it, Esc leaves it{tab}", need.id);
            (keys, format!("{asks}> {text}"), true)
        }
        Mode::Confirm { need } => {
            let command = need.commands.first().map(String::as_str).unwrap_or_default();
            let tab = if need.commands.len() > 1 { ", Tab: another way" } else { "" };
            (format!("y runs it, n leaves it{tab}"), format!("run: crewlog {command}"), false)
        }
        Mode::Read { .. } => (note, "j k scroll  Esc close".to_owned(), false),
    };
    let [over, under] = Layout::vertical([Constraint::Length(1); 2]).areas(area);
    frame.render_widget(Line::raw(one_line(&above, LINE_CHARS_MAX)), over);
    let typed = Line::raw(if is_typed { visible(&below) } else { one_line(&below, LINE_CHARS_MAX) });
    let hidden = u16::try_from(typed.width()).unwrap_or(u16::MAX).saturating_sub(under.width.saturating_sub(1));
    let end = u16::try_from(typed.width()).unwrap_or(u16::MAX).saturating_sub(hidden);
    frame.render_widget(Paragraph::new(typed).scroll((0, if is_typed { hidden } else { 0 })), under);
    if is_typed {
        frame.set_cursor_position((under.x + end, under.y));
    }
}

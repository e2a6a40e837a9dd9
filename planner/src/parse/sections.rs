//! Which parts of a text hold tasks, judged by their headings.

use super::lines::{Block, BlockKind, Pieces};
use super::markers::Marker;
use super::phrases::{Word, Words, after_any, after_word, list, lower, words};
use super::text::{blank, holds, is_cjk, rfind};
use super::{connectors, phases, unasked, vocabulary};
use crate::plan::Mark;

/// What a heading announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    /// Tasks; where there is such a section, only it counts.
    Tasks,
    /// What will not be done.
    Never,
    /// Goals, requirements, background.
    Context,
    /// A phase: everything in it waits for the phase before.
    Phase,
    /// Anything else.
    Plain,
}

static CONTEXT: Words = Words::new(|| {
    list(
        "overview|background|context|motivation|summary|introduction|goal|goals|objective|objectives|requirements|\
     requirement|functional requirements|non-functional requirements|nonfunctional requirements|\
     technical requirements|description|problem|problem statement|notes|note|references|reference|resources|\
     links|related|glossary|acceptance criteria|success criteria|success metrics|metrics|constraints|assumptions|\
     risks|dependencies|execution order|steps to reproduce|how to reproduce|reproduction|expected behavior|\
     expected behaviour|actual behavior|actual behaviour|current behavior|current behaviour|expected result|\
     actual result|environment|additional context|additional information|additional notes|screenshots|version|\
     versions|prerequisites|format|path conventions|parallel example|parallel examples|parallel opportunities|\
     implementation strategy|definition of done|appendix|architecture|technical architecture|tech stack|\
     user experience|user personas|personas|core features|users|changelog|license|about|stakeholders|terminology|\
     purpose|status|checkpoint|input|output|organization|organisation|tests|independent test|why this priority|\
     author|authors|owner|owners|reviewer|reviewers|approver|approvers|attendees|participants|date|due|due date|\
     deadline|created|updated|last updated|user flow|user flows|user journey|technical approach|\
     technical details|technical notes|implementation notes|alternatives|alternatives considered|considerations|\
     trade-offs|tradeoffs|consequences|impact|root cause|current state|faq|security considerations|definitions|\
     what happened|lessons learned|vision|why|rationale|legend|tl;dr|validation|validation checklist|notation|\
     phase dependencies|user story dependencies|within each user story|within each phase|within each story|\
     parallel team strategy|incremental delivery|mvp first|logistics|überblick|übersicht|hintergrund|kontext|ziele|ziel|\
     anforderungen|zusammenfassung|annahmen|risiken|abhängigkeiten|akzeptanzkriterien|beschreibung|aperçu|contexte|\
     objectifs|objectif|exigences|résumé|risques|critères d'acceptation|resumen|contexto|objetivos|objetivo|requisitos|\
     riesgos|supuestos|criterios de aceptación|descripción|visão geral|resumo|riscos|critérios de aceitação|descrição|\
     panoramica|contesto|obiettivi|obiettivo|requisiti|rischi|criteri di accettazione|descrizione|обзор|контекст|цели|\
     цель|требования|риски|описание|критерии приёмки|критерии приемки|概述|背景|目标|需求|要求|说明|风险|验收标准|概要|\
     目的|要件|リスク|受け入れ基準",
    )
});
static TASKS: Words = Words::new(|| {
    list(
        "tasks|task|todo|todos|to-do|to-dos|to do|task list|tasklist|roadmap|plan|action items|actions|next steps|\
     work items|what to do|what needs to be done|what needs doing|subtasks|sub-tasks|steps|checklist|implementation plan|implementation steps|development roadmap|\
     development plan|implementation tasks|work plan|action plan|work breakdown|project plan|aufgaben|aufgabenliste|\
     nächste schritte|zu erledigen|umsetzungsplan|tâches|liste des tâches|à faire|prochaines étapes|feuille de route|\
     plan d'action|tareas|lista de tareas|por hacer|pendientes|próximos pasos|plan de acción|hoja de ruta|tarefas|\
     lista de tarefas|a fazer|próximos passos|plano|plano de ação|compiti|attività|da fare|prossimi passi|\
     piano d'azione|задачи|список задач|план|план работ|сделать|следующие шаги|任务|任务清单|任务列表|待办|\
     待办事项|计划|实施计划|开发计划|路线图|下一步|タスク|タスク一覧|やること|計画|ロードマップ",
    )
});

/// What a heading announces.
pub(super) fn section(title: &str) -> Section {
    let plain = bare(title);
    let parts = |rest: &str, signs: &[char]| rest.is_empty() || rest.trim_start().starts_with(signs);
    let never = ['(', ':', '-', '\u{2013}', '\u{2014}', '/', '&'];
    if unasked::excluded(&plain).any(|rest| parts(rest, &never)) || unasked::forbids(&plain) {
        return Section::Never;
    }
    if phases::rest(&plain).is_some() {
        return Section::Phase;
    }
    if is_tasks(&plain) {
        return Section::Tasks;
    }
    if RESORTS.contains(&plain) {
        return Section::Context;
    }
    let context = ['(', ':', '&', '-', '\u{2013}', '\u{2014}', '/', '`'];
    if CONTEXT.found(&plain).any(|(_, rest)| parts(rest, &context)) { Section::Context } else { Section::Plain }
}

/// True for a heading that only says that something will not be done.
fn excludes(plain: &str) -> bool {
    unasked::excluded(plain).any(str::is_empty)
}

/// "Don't lose data on restart": the title of a text says what is wrong, and forbids nothing of what stands below it.
fn names_a_fault(title: &str) -> bool {
    let plain = bare(title);
    let points = ["do", "run", "execute", "use", "this", "these", "following", "forbidden", "ever"];
    !excludes(&plain) && words(&plain).nth(2).is_some() && !words(&plain).skip(1).any(|word| points.contains(&&*word))
}

/// Headings over what is done only if the rest goes wrong.
static RESORTS: Words = Words::new(|| list("rollback|rollback plan|rollback steps|backout plan|contingency plan"));

/// Headings over what was tried, is only shown or waits for somebody.
static SHOWN: Words = Words::new(|| {
    list(
        "what we tried|what i tried|what was tried|already tried|tried|attempts|previous attempts|example|previously|\
         before|history|blocked|on hold|waiting|beispiel|blockiert|exemple|ejemplo|bloqueado|exemplo|esempio|пример|示例|例",
    )
});

/// True when a heading announces what happened or is only shown, which nobody is to do again unasked.
pub(super) fn reports(title: &str) -> bool {
    let plain = bare(title);
    unasked::reports(&plain) || SHOWN.contains(&plain)
}

/// How far all is that stands under a heading: the column of a board.
pub(super) fn column(title: &str) -> Option<Mark> {
    static DONE: Words = Words::new(|| {
        list(
            "done|completed|complete|finished|closed|shipped|merged|resolved|already done|completed tasks|done tasks|\
             erledigt|fertig|abgeschlossen|fait|terminé|terminés|hecho|hechas|completado|completadas|feito|concluído|fatto|completato|\
             gedaan|afgerond|klaar|готово|сделано|выполнено|завершено|已完成|完成|完了",
        )
    });
    static CANCELLED: Words = Words::new(|| {
        list(
            "cancelled|canceled|rejected|dropped|abandoned|superseded|obsolete|deprecated|postponed|deferred|skipped|wontfix|\
             abgebrochen|verworfen|gestrichen|annulé|abandonné|cancelado|canceladas|cancelada|annullato|geannuleerd|отменено|已取消|\
             キャンセル|中止",
        )
    });
    let plain = bare(title);
    let plain = plain.split(" (").next().unwrap_or("").trim_end();
    match () {
        () if DONE.contains(plain) => Some(Mark::Done),
        () if CANCELLED.contains(plain) => Some(Mark::Cancelled),
        () => None,
    }
}

/// A heading without numbers, pictures and signs around it, in lower case.
fn bare(title: &str) -> String {
    let short = title
        .trim_start_matches(|c: char| !c.is_alphabetic())
        .trim_end_matches(|c: char| !c.is_alphanumeric() && c != ')');
    let short = if short.is_empty() { title } else { short };
    if short.is_ascii() && !holds(short, "**") {
        return lower(short).trim_end_matches([':', '\u{ff1a}']).trim().to_owned();
    }
    short
        .replace('\u{2019}', "'")
        .replace("**", "")
        .to_lowercase()
        .trim_end_matches([':', '\u{ff1a}'])
        .trim()
        .to_owned()
}

fn is_tasks(plain: &str) -> bool {
    let named = |rest: &str| {
        rest.trim_start().starts_with([':', '(', '-', '\u{2013}', '\u{2014}', '/'])
            || after_word(rest.trim_start(), "for").is_some()
    };
    if TASKS.found(plain).any(|(_, rest)| rest.is_empty() || named(rest)) {
        return !plain.starts_with("steps to");
    }
    let all: Vec<_> = words(plain).collect();
    let last = all.last().map_or("", Word::as_str);
    all.len() <= 5
        && (matches!(last, "roadmap" | "plan" | "tasks" | "todo" | "todos")
            || all.iter().any(|word| word.as_str() == "roadmap"))
        && !plain.starts_with("test plan")
        && !plain.starts_with("completed")
}

/// True when a section is named for its tasks and for nothing more.
fn is_exactly_tasks(title: &str) -> bool {
    TASKS.contains(&bare(title))
}

/// The title of a phase without "Phase 2:".
pub(super) fn phase_title(title: &str) -> String {
    let plain = bare(title);
    if holds(title, "???") && phases::rest(&plain).is_some_and(blank) {
        return "???".to_owned();
    }
    let rest = phases::rest(&plain)
        .map_or(plain.as_str(), |rest| rest.trim_start_matches(|c: char| !c.is_alphanumeric() && c != '`'));
    let chars = rest.chars().count();
    let shown = title.trim_end_matches(|c: char| matches!(c, ':' | '*' | '.') || c.is_whitespace());
    let words = title.trim_end_matches(|c: char| !c.is_alphanumeric() && c != ')');
    let skip = words.chars().count().saturating_sub(chars);
    shown.chars().skip(skip).collect()
}

/// How far the blocks of a text count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// As tasks.
    Tasks,
    /// As context; boxes in it still are tasks.
    Context { boxes: bool },
    /// Not at all, because the tasks have a section of their own elsewhere.
    Outside,
    /// Not at all.
    Never,
}

const COLONS: [char; 2] = [':', '\u{ff1a}'];

/// Makes headings of the bold lines and of the lines with a colon that stand for them.
pub(super) fn promote(text: &str, blocks: &mut [Block]) {
    // A line with a colon was taken for a heading: the next one above a list ends what it began.
    let mut framed = false;
    let mut n_phases = 0;
    // A line named a section of tasks without any sign: others like it name sections too.
    let mut named_bare = false;
    for n in 0..blocks.len() {
        framed &= !matches!(blocks[n].kind, BlockKind::Heading(level) if level < 7);
        let followed = blocks
            .get(n + 1)
            .is_some_and(|next| matches!(next.kind, BlockKind::Item { .. } | BlockKind::Heading(_) | BlockKind::Table));
        let next = blocks.get(n + 1).filter(|next| matches!(next.kind, BlockKind::Paragraph));
        let told = next.is_some();
        let first = next.and_then(|next| next.pieces.first());
        let next_phase = first.is_some_and(|piece| phases::names(&text[piece.start..piece.end]));
        let Some(block) = blocks
            .get_mut(n)
            .filter(|block| matches!(block.kind, BlockKind::Paragraph) && block.pieces.len() == 1 && block.indent < 2)
        else {
            continue;
        };
        let Some(piece) = block.pieces.first() else { continue };
        let line = &text[piece.start..piece.end];
        if line.len() > 120 {
            continue;
        }
        let inner =
            line.trim_end_matches(COLONS).trim_start_matches("**").trim_end_matches("**").trim_end_matches(COLONS);
        let bold = line.starts_with("**") && line.trim_end_matches(':').ends_with("**") && !inner.contains("**");
        let known = section(inner);
        let colon = line.ends_with(COLONS) || bold;
        let named_phase = known == Section::Phase && phases::names(line);
        let sentence = line.ends_with('.') && n_phases == 0 && !next_phase;
        let phase = known == Section::Phase && if named_phase { !sentence } else { !inner.ends_with('.') };
        let followed = followed || (named_phase && (n_phases > 0 || told));
        n_phases += usize::from(named_phase && phase);
        let named = colon && matches!(known, Section::Tasks | Section::Never | Section::Context) && !warns(inner);
        // What forbids only the list below it is no section: more can follow the list.
        if unasked::forbids(inner) && (!bold || line.ends_with(':')) && !excludes(&bare(inner)) {
            continue;
        }
        let asks = super::heads::head(inner).is_some();
        if asks && known != Section::Never && known != Section::Context {
            continue;
        }
        let named = named || colon && followed && column(inner).is_some();
        framed |= named && known != Section::Tasks;
        let alone = followed && is_bare(inner, known, named_bare);
        named_bare |= alone;
        let next = framed && colon && followed && is_name(inner);
        if (phase && (followed || colon)) || named || next || alone || (bold && followed && !warns(inner)) {
            block.kind = BlockKind::Heading(7);
        }
    }
}

/// True for "Out of scope" and "Roadmap" as they stand; for "Notes" behind one of them.
fn is_bare(line: &str, known: Section, after: bool) -> bool {
    let named = || {
        let plain = bare(line);
        excludes(&plain) || TASKS.contains(&plain) || (after && CONTEXT.contains(&plain))
    };
    let fits = matches!(known, Section::Tasks | Section::Never) || (after && known == Section::Context);
    fits && line.starts_with(|c: char| c.is_uppercase() || is_cjk(c)) && named()
}

/// True for "Deliverables": a few words that ask for nothing.
fn is_name(line: &str) -> bool {
    line.starts_with(|c: char| c.is_uppercase() || is_cjk(c))
        && words(line).nth(4).is_none()
        && !vocabulary::begins_with_verb(line)
        && connectors::connector(line).is_none()
        && connectors::connection(line).is_none()
}

/// True for "CRITICAL: these tests must fail first", which names nothing below it.
pub(super) fn warns(line: &str) -> bool {
    let said = line.split_once(':').filter(|(_, rest)| !blank(rest));
    said.is_some_and(|(label, _)| unasked::warns(label.trim_matches(|c: char| !c.is_alphabetic())))
}

/// False when nothing but headings and what is ignored anyway is there, and no heading is a phase.
pub(super) fn holds_steps(text: &str, blocks: &[Block]) -> bool {
    blocks.iter().any(|block| match block.kind {
        BlockKind::Heading(_) => {
            block.pieces.iter().any(|piece| section(&text[piece.start..piece.end]) == Section::Phase)
        }
        BlockKind::Ignored => false,
        BlockKind::Item { .. } | BlockKind::Paragraph | BlockKind::Fence(_) | BlockKind::Table => true,
    })
}

/// Makes items of the headings of a text that has nothing else, where one of them says what to do: those under others stand in them, and a single one above
/// all others stays the title. Headings that only name a section stay; true when any became an item.
pub(super) fn outline_only<'t>(text: &'t str, blocks: &mut [Block<'t>]) -> bool {
    let mut heads: Vec<(usize, usize)> = Vec::new();
    for (n, block) in blocks.iter().enumerate() {
        match block.kind {
            BlockKind::Heading(level) => heads.push((n, level)),
            BlockKind::Ignored => {}
            BlockKind::Item { .. } | BlockKind::Paragraph | BlockKind::Fence(_) | BlockKind::Table => return false,
        }
    }
    let says = |n: usize| {
        let line = blocks[n].pieces.first().map_or("", |piece| &text[piece.start..piece.end]);
        let found = super::markers::item(line, None, false).map_or(0, |found| found.skip);
        found > 0 || super::vocabulary::begins_with_verb(&line[found..])
    };
    if !heads.iter().any(|(n, _)| says(*n)) {
        return false;
    }
    let title = heads.first().filter(|(_, top)| heads.len() > 1 && heads[1..].iter().all(|(_, level)| level > top));
    let title = title.map(|(n, _)| *n);
    let mut any = false;
    for (n, level) in heads {
        let piece = blocks[n].pieces.first().copied();
        let Some(mut piece) = piece.filter(|piece| piece.start < piece.end && Some(n) != title) else { continue };
        let line = &text[piece.start..piece.end];
        if section(line) != Section::Plain {
            continue;
        }
        let found = super::markers::item(line, None, false);
        let (marker, mark) = found.map_or((Marker::Bullet, None), |found| {
            piece.start += found.skip;
            (found.marker, found.mark)
        });
        let block = &mut blocks[n];
        block.kind = BlockKind::Item { marker, mark };
        block.indent = 2 * level;
        block.pieces = Pieces::One([piece]);
        any = true;
    }
    any
}

/// "As a user, I want to export it": what somebody is to gain, and nothing that can be done as it stands.
pub(super) fn is_story(line: &str) -> bool {
    let Some((_, wish)) = after_any(line, &["as a", "as an"]).and_then(|rest| rest.split_once(',')) else {
        return false;
    };
    let mut all = words(wish);
    let speaks = all.next().is_some_and(|who| matches!(who.as_str(), "i" | "we"));
    speaks && all.next().is_some_and(|verb| matches!(verb.as_str(), "want" | "need" | "can" | "would" | "should"))
}

/// Ignores the stories of a text that has requirements, which say what is to be done for them.
pub(super) fn drop_stories(text: &str, blocks: &mut [Block]) {
    let line = |block: &Block| block.pieces.first().map_or("", |piece| &text[piece.start..piece.end]);
    let is_heading = |block: &Block| matches!(block.kind, BlockKind::Heading(_));
    if !blocks.iter().any(|block| is_heading(block) && holds(&lower(line(block)), "requirement")) {
        return;
    }
    for block in blocks {
        if matches!(block.kind, BlockKind::Item { mark: None, .. }) && is_story(line(block)) {
            block.kind = BlockKind::Ignored;
        }
    }
}

/// For each block how it counts; `lenient` lets everything count but what will not be done.
pub(super) fn uses(text: &str, blocks: &[Block], lenient: bool) -> Vec<Use> {
    let heads: Vec<(usize, usize, Section, bool)> = blocks
        .iter()
        .enumerate()
        .filter_map(|(n, block)| match block.kind {
            BlockKind::Heading(level) => block.pieces.first().map(|piece| {
                let title = &text[piece.start..piece.end];
                let first = n == 0 && level == 1 && names_a_fault(title);
                (n, level, if first { Section::Plain } else { section(title) }, is_exactly_tasks(title))
            }),
            _ => None,
        })
        .collect();
    let wanted = wanted(&heads, |n| asks_itself(text, &blocks[n + 1..]));
    let only = !lenient && wanted.iter().any(|w| *w);
    let mut uses = Vec::with_capacity(blocks.len());
    let mut open: Vec<(usize, Use, bool)> = Vec::new();
    let mut next = 0;
    for n in 0..blocks.len() {
        if let Some((_, level, section, _)) = heads.get(next).filter(|(at, ..)| *at == n) {
            while open.last().is_some_and(|(above, ..)| above >= level) {
                open.pop();
            }
            let above = open.last().copied();
            let inside = wanted[next] || above.is_some_and(|(_, _, inside)| inside);
            let use_ = match (section, above) {
                (_, Some((_, Use::Never, _))) | (Section::Never, _) => Use::Never,
                (_, Some((_, Use::Context { .. }, _))) | (Section::Context, _) if only && !inside => {
                    Use::Context { boxes: false }
                }
                _ if only && !inside => Use::Outside,
                (Section::Context, _) if !lenient => Use::Context { boxes: !only },
                (_, Some((_, Use::Context { boxes }, _))) if !lenient && !wanted[next] => Use::Context { boxes },
                _ => Use::Tasks,
            };
            open.push((*level, use_, inside));
            next += 1;
        }
        uses.push(open.last().map_or(if only { Use::Outside } else { Use::Tasks }, |(_, use_, _)| *use_));
    }
    forbidden(text, blocks, &mut uses);
    uses
}

/// True when items that say what to do stand right under a heading, before the next one.
fn asks_itself(text: &str, blocks: &[Block]) -> bool {
    let own = blocks.iter().take_while(|block| !matches!(block.kind, BlockKind::Heading(_)));
    let mut items = own.filter(|block| matches!(block.kind, BlockKind::Item { .. }));
    let line = |block: &Block| block.pieces.first().map_or("", |piece| &text[piece.start..piece.end]);
    items.any(|block| vocabulary::begins_with_verb(line(block)))
}

/// What stands under "Do not:" is kept as words: the list, the table and the code below a line, and the items of an
/// item, which forbids and ends in a colon.
fn forbidden(text: &str, blocks: &[Block], uses: &mut [Use]) {
    // The column of the item, or nothing for a line; and whether anything of the list below it was met.
    let mut under: Option<(Option<usize>, bool)> = None;
    for (n, block) in blocks.iter().enumerate() {
        let item = matches!(block.kind, BlockKind::Item { .. });
        let inside = match (&block.kind, under) {
            (_, None) | (BlockKind::Heading(_), _) => false,
            (BlockKind::Ignored, _) => continue,
            (BlockKind::Paragraph, Some((column, _))) => column.is_some_and(|column| block.indent > column),
            (BlockKind::Item { .. }, Some((column, _))) => column.is_none_or(|column| block.indent > column),
            (BlockKind::Fence(_) | BlockKind::Table, Some((column, met))) => !met || block.indent > column.unwrap_or(0),
        };
        if inside && uses[n] == Use::Tasks {
            uses[n] = Use::Context { boxes: false };
        }
        if inside {
            under = under.map(|(column, _)| (column, true));
            continue;
        }
        under = None;
        let line = block.pieces.last().map_or("", |piece| &text[piece.start..piece.end]);
        let plain = line.trim_end_matches(['*', '_', ' ']);
        let (colon, marked) = (plain.ends_with([':', '\u{ff1a}']), plain.len() < line.len());
        if !(colon || marked) || !(item || block.kind == BlockKind::Paragraph) {
            continue;
        }
        let last = rfind(plain, ". ").map_or(plain, |at| &plain[at + 2..]);
        if (colon || last.len() < 80) && unasked::forbids(last) {
            under = Some((item.then_some(block.indent), false));
            let held = blocks.get(n + 1).is_some_and(|next| next.indent > block.indent);
            let alone = !item && block.pieces.len() == 1 && last.len() == plain.len();
            if (item && held || alone) && uses[n] == Use::Tasks {
                uses[n] = Use::Context { boxes: false };
            }
        }
    }
}

/// Which headings open a section of tasks; a section that holds another one named so is only its frame, unless it has
/// tasks of its own.
fn wanted(heads: &[(usize, usize, Section, bool)], asks: impl Fn(usize) -> bool) -> Vec<bool> {
    let mut wanted: Vec<bool> = heads.iter().map(|(_, _, section, _)| *section == Section::Tasks).collect();
    let mut open: Vec<(usize, usize)> = Vec::new();
    for (n, (_, level, section, exact)) in heads.iter().enumerate() {
        while open.last().is_some_and(|(_, above)| above >= level) {
            open.pop();
        }
        if *section == Section::Tasks && *exact {
            for (frame, _) in &open {
                wanted[*frame] &= asks(heads[*frame].0);
            }
        }
        open.push((n, *level));
    }
    wanted
}

//! A terminal's screen after some output, with the lines that have scrolled off its top.

/// The lines on a terminal of this size. Colours are dropped.
pub fn screen(output: &str, (columns, rows): (usize, usize)) -> String {
    let mut lines = vec![Vec::<String>::new(); rows];
    let (mut row, mut column) = (0_usize, 0);
    let mut rest = output;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        let control = rest.strip_prefix('[').filter(|_| c == '\u{1b}');
        let top = lines.len() - rows;
        if let Some((end, last)) = control.and_then(|control| control.char_indices().find(|(_, c)| c.is_alphabetic())) {
            let arguments = &rest[1..=end];
            let n = |text: &str| text.parse::<usize>().unwrap_or(1);
            match last {
                'A' => row = top.max(row.saturating_sub(n(arguments))),
                'B' => row = (row + n(arguments)).min(lines.len() - 1),
                'H' => {
                    let (to_row, to_column) = arguments.split_once(';').unwrap_or(("1", "1"));
                    (row, column) = ((top + n(to_row) - 1).min(lines.len() - 1), n(to_column) - 1);
                }
                'K' => lines[row].truncate(if arguments == "2" { 0 } else { column }),
                _other => {}
            }
            rest = &rest[1 + end + last.len_utf8()..];
            continue;
        }
        let width = console::measure_text_width(c.encode_utf8(&mut [0; 4]));
        match c {
            '\r' => column = 0,
            '\n' => row += 1,
            c if c.is_control() => {}
            c => {
                if column + width > columns {
                    (row, column) = (row + 1, 0);
                    lines.resize(lines.len().max(row + 1), Vec::new());
                }
                let line = &mut lines[row];
                line.resize(line.len().max(column + width), " ".into());
                // A wide character takes two cells.
                line[column..column + width].fill(String::new());
                line[column] = c.into();
                column += width;
            }
        }
        lines.resize(lines.len().max(row + 1), Vec::new());
    }
    lines.into_iter().map(|line| line.concat().trim_end().to_owned() + "\n").collect()
}

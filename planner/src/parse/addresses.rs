//! Addresses of the web in a text: how they begin and where they end. What they mean is for others.

use super::text::blank;

/// `name://` with something after it.
pub(super) fn scheme(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    if !bytes.first()?.is_ascii_alphabetic() {
        return None;
    }
    let length =
        bytes.iter().take(12).take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.')).count();
    let rest = bytes.get(length..)?;
    (rest.starts_with(b"://") && rest.get(3).is_some_and(|b| !b.is_ascii_whitespace())).then_some(length)
}

/// The length of an address: brackets balanced, punctuation at the end left off.
pub(super) fn url_length(text: &str) -> usize {
    let stop = |c: char| {
        c.is_whitespace()
            || matches!(c, '<' | '>' | '"' | '`' | '|' | '\u{2225}' | '\u{201c}' | '\u{201d}' | '\u{2019}')
            || is_cjk_sign(c)
    };
    // What is not ASCII is judged by its character.
    let doubtful = |byte: u8| byte <= b' ' || byte >= 0x7f || matches!(byte, b'<' | b'>' | b'"' | b'`' | b'|');
    let plain = text.bytes().position(doubtful).unwrap_or(text.len());
    let mut length = text[plain..].find(stop).map_or(text.len(), |found| plain + found);
    if text[..length].ends_with(|c: char| c.is_ascii_alphanumeric()) {
        return length;
    }
    let whole = length;
    let signs = |c: u8| text.bytes().take(whole).filter(|b| *b == c).count();
    let pair = |open: u8, close: u8| (close, signs(open), signs(close));
    // Only of an address that ends in a bracket they are counted.
    let mut depth = None;
    while let Some(last) = text[..length].chars().next_back() {
        let bracket = if matches!(last, ')' | ']' | '}') {
            let all = depth.get_or_insert_with(|| [pair(b'(', b')'), pair(b'[', b']'), pair(b'{', b'}')]);
            all.iter_mut().find(|(close, _, _)| char::from(*close) == last)
        } else {
            None
        };
        let off = match bracket {
            Some((_, open, close)) if *close > *open => {
                *close -= 1;
                true
            }
            Some(_) => false,
            None => matches!(last, '.' | ',' | ';' | ':' | '!' | '?' | '\'' | '*' | '_' | '~'),
        };
        if !off {
            break;
        }
        length -= last.len_utf8();
    }
    length
}

fn is_cjk_sign(c: char) -> bool {
    matches!(
        c,
        '\u{3000}'
            ..='\u{303f}' | '\u{ff01}' | '\u{ff08}' | '\u{ff09}' | '\u{ff0c}' | '\u{ff1a}' | '\u{ff1b}' | '\u{ff1f}'
    )
}

/// `[name]: target`, as name and target.
pub(super) fn definition(content: &str) -> Option<(&str, &str)> {
    let rest = content.strip_prefix('[')?;
    let (name, rest) = rest.split_once("]:")?;
    let target = rest.split_whitespace().next()?;
    let fits = !name.is_empty() && name.len() < 200 && !name.contains(['[', ']']) && !blank(name);
    let address = target.contains(['/', '.', '#']) && !name.starts_with('^');
    (fits && address && rest.split_whitespace().count() <= 6 && rest.starts_with(' '))
        .then(|| (name, target.trim_matches(['<', '>'])))
}

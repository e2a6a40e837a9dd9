//! Counting tokens as the tokenizer of a model does, for the models of which one is known. What it does not know it does not
//! guess: guesses are made in the planner's crate, where they can be made again.

/// So many bytes of a text are put to the tokenizer at a time: what it needs for a word without end grows faster than the
/// word.
const PIECE_BYTES_MAX: usize = 4_000;

/// The tokens of a text for a model, when its tokenizer is known; else nothing. A text is cut into pieces between words, and
/// a word that is longer than a piece may count a token more for each.
#[must_use]
pub fn count(model: &str, text: &str) -> Option<u64> {
    let tokenizer = tokenizer_of(model)?;
    Some(pieces(text).map(tokenizer).sum())
}

/// Of OpenAI's models those that are in use have one vocabulary; that of the ones before is not carried along.
#[cfg(feature = "tokenizers")]
fn tokenizer_of(model: &str) -> Option<impl Fn(&str) -> u64> {
    use tiktoken_rs::tokenizer::{Tokenizer, get_tokenizer};
    match get_tokenizer(model)? {
        Tokenizer::O200kBase | Tokenizer::O200kHarmony => {
            Some(|piece: &str| tiktoken_rs::o200k_base_singleton().encode_ordinary(piece).len() as u64)
        }
        Tokenizer::Cl100kBase | Tokenizer::P50kBase | Tokenizer::R50kBase | Tokenizer::P50kEdit | Tokenizer::Gpt2 => {
            None
        }
    }
}

#[cfg(not(feature = "tokenizers"))]
fn tokenizer_of(_model: &str) -> Option<fn(&str) -> u64> {
    None
}

/// A text in pieces, each but the last cut before the last blank that has a letter behind it: such a blank begins a token.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if rest.len() <= PIECE_BYTES_MAX {
            return Some(std::mem::take(&mut rest));
        }
        let start = &rest[..rest.floor_char_boundary(PIECE_BYTES_MAX)];
        let begins_word = |at: &usize| start.as_bytes().get(at + 1).is_some_and(u8::is_ascii_alphabetic);
        let blank =
            start.bytes().enumerate().rev().filter(|(_, byte)| *byte == b' ').map(|(at, _)| at).find(begins_word);
        let (piece, behind) = rest.split_at(blank.filter(|at| *at > 0).unwrap_or(start.len()));
        rest = behind;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(feature = "tokenizers")]
    fn the_tokens_of_a_known_model_are_counted_as_its_provider_does() {
        for (model, text, n_tokens) in [
            ("gpt-4o", "", 0),
            ("gpt-4o", "hello world", 2),
            ("gpt-5-mini", "hello world", 2),
            ("o3", "2026-11-21", 6),
            ("gpt-4.1-nano", "<|endoftext|>", 7),
        ] {
            assert_eq!(count(model, text), Some(n_tokens), "{model}: {text}");
        }
    }

    #[test]
    #[cfg(feature = "tokenizers")]
    fn a_long_text_is_counted_piece_by_piece_and_a_word_without_end_soon() {
        let sentence = "Please add a login form to the settings page, and write tests for it.";
        let of_one = count("gpt-4o", &format!(" {sentence}")).expect("it is known");
        let many = vec![sentence; 2_000].join(" ");
        let n_tokens = count("gpt-4o", &many).expect("it is known");
        assert_eq!(n_tokens, 2_000 * of_one);
        for endless in ["a", " ", "\n", "A", "é", "中", "!"] {
            assert!(count("gpt-4o", &endless.repeat(100_000)).is_some_and(|n_tokens| n_tokens > 0), "{endless:?}");
        }
    }

    #[test]
    fn what_is_not_known_is_not_counted() {
        for model in ["claude-sonnet-4-5", "gpt-2", "gpt-4", "", "my-own"] {
            assert_eq!(count(model, "hello world"), None, "{model}");
        }
    }

    #[test]
    fn pieces_are_the_text() {
        for text in ["", "a", &"word ".repeat(3_000), &"é".repeat(9_001), &" ".repeat(9_001), &" a".repeat(2_001)] {
            let pieces = pieces(text).collect::<Vec<_>>();
            assert_eq!(pieces.concat(), text);
            assert!(pieces.iter().all(|piece| !piece.is_empty() && piece.len() <= PIECE_BYTES_MAX));
        }
    }
}

//! Stilted wordings that have a plainer form, in comments and pages.

/// Wordings refused everywhere.
const EVERYWHERE: &str = "what of it|of what it |what came of|what else|what there is|so that what|for what it|by what|\
    who reads|who waits|who asks|who appends|by whom|of whom|is told|are told|was told|were told|told of|tells of|tell of|\
    said of|says of|say of|is to be |are to be |is not to |are not to |is otherwise|otherwise than|is known of| anew| bears|\
    comes to pass| lies | stands in | stands there| stands up| stands at| stands before| stands after| stands on | it stands|\
    became of| they stand|becomes of|of its own accord";
/// Wordings refused in comments.
const IN_COMMENTS: &str = "whoever| what is |goes on| go on | went on |beside | bear | lie | stand in | stand there|be had|\
    is said| of none| be it |all the same|so many |passed over|passes over";
/// Words that open no sentence of a comment: say the noun, or "True if".
const OPENINGS: &str = "What|Who|Whoever|Whose|Whatever|Which|Whether|Of what|By what|To what|For what|Of whom|By whom|\
    The same,|The same as|The same where|Until when|Up to where|After how|In which|By which|Under which";

/// The stilted wordings in a line of prose, one for each place.
pub(crate) fn stilted(prose: &str, is_comment: bool) -> Vec<&'static str> {
    let lower = prose.to_lowercase();
    let lists: &[&'static str] = if is_comment { &[EVERYWHERE, IN_COMMENTS] } else { &[EVERYWHERE] };
    let wordings = lists.iter().flat_map(|list| list.split('|'));
    let mut found: Vec<_> = wordings.flat_map(|wording| lower.matches(wording).map(|_| wording.trim())).collect();
    if is_comment && !prose.ends_with('?') {
        let sentences = prose.trim_start_matches(['/', '!', ' ']).split(". ");
        let opens = |sentence: &str| OPENINGS.split('|').find(|words| begins(sentence, words));
        found.extend(sentences.filter_map(opens));
    }
    found
}

fn begins(sentence: &str, words: &str) -> bool {
    sentence.strip_prefix(words).is_some_and(|rest| rest.starts_with(' '))
}

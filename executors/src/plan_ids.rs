//! Ids of plans: a slug, by which a person names the plan, and a random suffix, as in `release-the-shop-yx5x`.

use crewlog_mq::new_event_id;

/// Letters and digits that are hard to mistake for each other.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const SUFFIX_BYTES: usize = 4;
const SLUG_BYTES_MAX: usize = 24;
const FORK: &str = "-fork";

/// Lower-case letters, digits and single dashes, at most 24 of them.
#[must_use]
pub fn slug(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = words.collect::<Vec<_>>().join("-").to_ascii_lowercase();
    slug.truncate(SLUG_BYTES_MAX);
    slug.trim_end_matches('-').to_owned()
}

/// A new id with this slug.
#[must_use]
pub fn new_id(slug: &str) -> String {
    let random = new_event_id().into_bytes();
    let suffix = random[16 - SUFFIX_BYTES..].iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)]));
    format!("{slug}-{}", suffix.collect::<String>())
}

/// An id without its random suffix; whole if it has none, as that of a standing plan or a sub-plan.
pub fn slug_of(id: &str) -> &str {
    let is_random = |suffix: &str| suffix.len() == SUFFIX_BYTES && suffix.bytes().all(|byte| ALPHABET.contains(&byte));
    id.rsplit_once('-').filter(|(_, suffix)| is_random(suffix)).map_or(id, |(slug, _)| slug)
}

/// The slug of a plan's fork: `ship-fork`, and of that one's fork `ship-fork-2`. It differs from the slugs of all plans that
/// the fork descends from, so that each of them can still be named by its own.
pub fn fork_slug(parent: &str) -> String {
    let slug_of_parent = slug_of(parent);
    let forked = slug_of_parent.rsplit_once(FORK).and_then(|(stem, generation)| match generation.strip_prefix('-') {
        None => generation.is_empty().then_some((stem, 1)),
        Some(generation) => Some((stem, generation.parse::<u32>().ok()?)),
    });
    let (stem, generation) =
        forked.map_or((slug_of_parent, 1), |(stem, of_parent)| (stem, of_parent.saturating_add(1)));
    let stem = slug(stem);
    let stem = if stem.is_empty() { "plan" } else { &stem };
    if generation == 1 { format!("{stem}{FORK}") } else { format!("{stem}{FORK}-{generation}") }
}

#[cfg(test)]
mod tests;

//! The ciphers: seal a text under the key of its session, and wrap that key under the operator's. Nothing here reads or
//! writes files or logs.
//!
//! Both use XChaCha20-Poly1305 with keys derived by BLAKE3, one for each use. The event and the field of a text are
//! associated data, so it opens nowhere else. Its nonce derives from them and from the text itself: a retry gives the
//! same bytes, and two different texts never share a nonce, even under one event id.

use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use uuid::Uuid;

use crate::programs::hex;

const NONCE_BYTES: usize = 24;
const KEY_BYTES: usize = 32;
/// The prefix of an operator's key file.
const OPERATOR_FORM: &str = "crewlog-operator-key-1 ";

/// 32 random or derived bytes. They are overwritten when dropped.
pub(super) struct Secret([u8; KEY_BYTES]);

impl Secret {
    pub(super) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; KEY_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        Some(Self(bytes.try_into().ok()?))
    }

    fn derived(&self, purpose: &str) -> Self {
        Self(blake3::derive_key(purpose, &self.0))
    }

    fn encrypt(&self, nonce: &[u8; NONCE_BYTES], bound_to: &[u8], text: &[u8]) -> Vec<u8> {
        let cipher = XChaCha20Poly1305::new((&self.0).into());
        let sealed = cipher.encrypt(&XNonce::from(*nonce), Payload { msg: text, aad: bound_to });
        let sealed = sealed.expect("no text in an event is as long as the cipher's limit");
        [nonce.as_slice(), &sealed].concat()
    }

    fn decrypt(&self, bound_to: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        let cipher = XChaCha20Poly1305::new((&self.0).into());
        cipher.decrypt(&XNonce::from(*nonce), Payload { msg: sealed, aad: bound_to }).ok()
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.fill(0);
        // Keeps the compiler from removing the overwrite of memory that is not read again.
        std::hint::black_box(&self.0);
    }
}

/// An operator's key, which wraps the keys of sessions.
pub(super) struct OperatorKey {
    wrapping: Secret,
    /// Its id, which reveals nothing about the key.
    pub(super) fingerprint: String,
}

impl OperatorKey {
    fn of(secret: &Secret) -> Self {
        let Secret(mark) = secret.derived("crewlog 1 fingerprint of an operator's key");
        let fingerprint = hex(mark.first_chunk::<8>().expect("it has 32 bytes"));
        Self { wrapping: secret.derived("crewlog 1 wrapping of session keys"), fingerprint }
    }

    /// A new key, and the text of its file.
    pub(super) fn written(secret: &Secret) -> (String, Self) {
        (format!("{OPERATOR_FORM}{}\n", encode(&secret.0)), Self::of(secret))
    }

    /// Reads a key from the text of its file.
    pub(super) fn read(text: &str) -> Option<Self> {
        let bytes = decode(text.trim().strip_prefix(OPERATOR_FORM)?.trim())?;
        Some(Self::of(&Secret::of(&bytes)?))
    }

    /// Wraps the key of a session; `bound_to` identifies its owner.
    pub(super) fn wrap(&self, session: &SessionKey, bound_to: &[&[u8]]) -> Result<String, getrandom::Error> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce)?;
        Ok(encode(&self.wrapping.encrypt(&nonce, &joined(bound_to), &session.secret.0)))
    }

    pub(super) fn unwrap(&self, wrapped: &str, bound_to: &[&[u8]]) -> Option<SessionKey> {
        let mut bytes = self.wrapping.decrypt(&joined(bound_to), &decode(wrapped)?)?;
        let secret = Secret::of(&bytes);
        bytes.fill(0);
        std::hint::black_box(&bytes);
        Some(SessionKey::of(secret?))
    }
}

/// The key of a session.
pub(super) struct SessionKey {
    secret: Secret,
    sealing: Secret,
    nonces: Secret,
}

/// The place of a text.
pub(super) struct Place<'a> {
    pub(super) event_id: Uuid,
    pub(super) stream_id: &'a str,
    pub(super) aggregate_id: &'a str,
    pub(super) event_type: &'a str,
    pub(super) field: &'a str,
}

impl Place<'_> {
    fn joined(&self) -> Vec<u8> {
        let Place { event_id, stream_id, aggregate_id, event_type, field } = self;
        let names = [stream_id, aggregate_id, event_type, field].map(|name| name.as_bytes());
        joined(&[event_id.as_bytes().as_slice(), names[0], names[1], names[2], names[3]])
    }
}

impl SessionKey {
    pub(super) fn random() -> Result<Self, getrandom::Error> {
        Secret::random().map(Self::of)
    }

    fn of(secret: Secret) -> Self {
        let sealing = secret.derived("crewlog 1 sealing of texts");
        let nonces = secret.derived("crewlog 1 nonces of texts");
        Self { secret, sealing, nonces }
    }

    /// The key of the outputs of its plans.
    pub(super) fn of_outputs(&self) -> [u8; KEY_BYTES] {
        self.secret.derived("crewlog 1 outputs of runs").0
    }

    pub(super) fn seal(&self, place: &Place<'_>, text: &str) -> String {
        let bound_to = place.joined();
        let hash = blake3::Hasher::new_keyed(&self.nonces.0).update(&bound_to).update(text.as_bytes()).finalize();
        let nonce = hash.as_bytes().first_chunk::<NONCE_BYTES>().expect("a hash has 32 bytes");
        encode(&self.sealing.encrypt(nonce, &bound_to, text.as_bytes()))
    }

    pub(super) fn open(&self, place: &Place<'_>, sealed: &str) -> Option<String> {
        String::from_utf8(self.sealing.decrypt(&place.joined(), &decode(sealed)?)?).ok()
    }
}

/// Joins several parts unambiguously.
fn joined(parts: &[&[u8]]) -> Vec<u8> {
    let part = |part: &&[u8]| [&(part.len() as u64).to_le_bytes(), *part].concat();
    parts.iter().flat_map(part).collect()
}

/// A name for a key, derived from its purpose.
pub(super) fn name_of(parts: &[&[u8]]) -> String {
    hex(blake3::hash(&joined(parts)).as_bytes().first_chunk::<16>().expect("a hash has 32 bytes"))
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Base64 for URLs, without padding: it needs no escape in JSON, and never looks like a path.
fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 4 / 3 + 3);
    for chunk in bytes.chunks(3) {
        let [first, second, third] = [0, 1, 2].map(|index| u32::from(chunk.get(index).copied().unwrap_or(0)));
        let bits = first << 16 | second << 8 | third;
        // One byte gives two characters, two give three, three give four.
        let signs = [18, 12, 6, 0].into_iter().take(chunk.len() + 1);
        text.extend(signs.map(|shift| char::from(ALPHABET[(bits >> shift) as usize & 63])));
    }
    text
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    for chunk in text.as_bytes().chunks(4) {
        let mut bits = 0;
        for (sign, shift) in chunk.iter().zip([18, 12, 6, 0]) {
            bits |= value_of(*sign)? << shift;
        }
        let [_, first, second, third] = u32::to_be_bytes(bits);
        let (given, rest) = match chunk.len() {
            4 => (3, 0),
            3 => (2, third),
            2 => (1, second | third),
            _one_sign => return None,
        };
        // The encoding is unique: unused bits must be zero.
        if rest != 0 {
            return None;
        }
        bytes.extend([first, second, third].into_iter().take(given));
    }
    Some(bytes)
}

fn value_of(sign: u8) -> Option<u32> {
    Some(u32::from(match sign {
        b'A'..=b'Z' => sign - b'A',
        b'a'..=b'z' => sign - b'a' + 26,
        b'0'..=b'9' => sign - b'0' + 52,
        b'-' => 62,
        b'_' => 63,
        _other => return None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(event_id: u128, field: &str) -> Place<'_> {
        let event_id = Uuid::from_u128(event_id);
        Place { event_id, stream_id: "planner", aggregate_id: "p", event_type: "PlanPaused", field }
    }

    #[test]
    fn a_text_decrypts_only_with_its_key_and_in_its_place() {
        let (key, other) = (SessionKey::random().unwrap(), SessionKey::random().unwrap());
        let sealed = key.seal(&place(1, "data/reason"), "why");
        assert_eq!(key.open(&place(1, "data/reason"), &sealed).as_deref(), Some("why"));
        assert_eq!(other.open(&place(1, "data/reason"), &sealed), None);
        assert_eq!(key.open(&place(2, "data/reason"), &sealed), None);
        assert_eq!(key.open(&place(1, "data/other"), &sealed), None);
        assert_eq!(key.open(&Place { aggregate_id: "q", ..place(1, "data/reason") }, &sealed), None);
        assert_eq!(key.open(&Place { stream_id: "task", ..place(1, "data/reason") }, &sealed), None);
        assert_eq!(key.open(&Place { event_type: "PlanCancelled", ..place(1, "data/reason") }, &sealed), None);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(key.open(&place(1, "data/reason"), &changed), None, "sign {at}");
        }
        assert_eq!(key.open(&place(1, "data/reason"), "too-short"), None);
    }

    #[test]
    fn equal_texts_encrypt_equally_and_another_text_or_place_changes_the_nonce() {
        let key = SessionKey::random().unwrap();
        let sealed = |event_id, field, text| decode(&key.seal(&place(event_id, field), text)).unwrap();
        let first = sealed(1, "f", "text");
        assert_eq!(sealed(1, "f", "text"), first);
        for other in [sealed(1, "f", "tex_"), sealed(2, "f", "text"), sealed(1, "g", "text")] {
            assert_ne!(other[..NONCE_BYTES], first[..NONCE_BYTES]);
        }
    }

    #[test]
    fn a_session_key_is_unwrapped_only_by_its_operators_key_for_its_session() {
        let (text, operator) = OperatorKey::written(&Secret::random().unwrap());
        let (_, other) = OperatorKey::written(&Secret::random().unwrap());
        let session = SessionKey::random().unwrap();
        let wrapped = operator.wrap(&session, &[b"a", b"b"]).unwrap();
        let read = OperatorKey::read(&text).unwrap();
        assert_eq!(read.fingerprint, operator.fingerprint);
        assert_ne!(read.fingerprint, other.fingerprint);
        let sealed = session.seal(&place(1, "f"), "text");
        let unwrapped = read.unwrap(&wrapped, &[b"a", b"b"]).unwrap();
        assert_eq!(unwrapped.open(&place(1, "f"), &sealed).as_deref(), Some("text"));
        assert!(other.unwrap(&wrapped, &[b"a", b"b"]).is_none());
        assert!(read.unwrap(&wrapped, &[b"a", b"c"]).is_none());
        assert!(read.unwrap(&wrapped, &[b"ab", b""]).is_none());
    }

    #[test]
    fn bytes_of_any_length_have_exactly_one_encoding() {
        for length in 0..70_u8 {
            let bytes = (0..length).map(|n| n.wrapping_mul(97)).collect::<Vec<_>>();
            assert_eq!(decode(&encode(&bytes)).as_deref(), Some(bytes.as_slice()));
        }
        assert_eq!(encode(&[0xfb, 0xef, 0xff, 1]), "--__AQ");
        for text in ["A", "AB", "AAB", "A+", "A=", "é", "AAAAA"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}

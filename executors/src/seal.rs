//! The cipher of the outputs of encrypted plans: a file of an output begins with a head, and each byte after it is encrypted in
//! its place, so that the end of a long output can overwrite its middle.
//!
//! The stream is the extended output of keyed BLAKE3 over a nonce of the file's own, and a place in an output is written once. It
//! hides the text; that nobody changed it shows the hash in the event.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

const MAGIC: &[u8; 16] = b"crewlog-sealed-1";
const NAME_BYTES: usize = 32;
const NONCE_BYTES: usize = 16;
/// The length of the head: the magic bytes, the name of the key, the nonce.
pub(crate) const HEAD_BYTES: u64 = (MAGIC.len() + NAME_BYTES + NONCE_BYTES) as u64;

/// The keys of encrypted plans.
pub trait OutputKeys: Send + Sync {
    /// The key of the outputs of a plan, by the name in the tags of its events; none if it is not here.
    fn output_key(&self, name: &str) -> Option<[u8; 32]>;
}

/// The cipher of one file.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    name: String,
    nonce: [u8; NONCE_BYTES],
    key: [u8; 32],
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seal").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Seal {
    /// For a new file; none if the key is not here.
    pub(crate) fn new(keys: &dyn OutputKeys, name: &str) -> Option<Self> {
        let key = keys.output_key(name).filter(|_| name.len() == NAME_BYTES)?;
        Some(Self { name: name.to_owned(), nonce: *crewlog_mq::new_event_id().as_bytes(), key })
    }

    /// That of an encrypted file.
    ///
    /// # Errors
    /// The file is damaged, or its key is not here.
    pub(crate) fn of(file: &Path, keys: Option<&dyn OutputKeys>) -> io::Result<Self> {
        let mut head = [0; HEAD_BYTES as usize];
        File::open(file)?.read_exact_at(&mut head, 0)?;
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "the file is damaged");
        let (name, nonce) = head.strip_prefix(MAGIC).ok_or_else(damaged)?.split_at(NAME_BYTES);
        let (name, nonce) = (String::from_utf8_lossy(name).into_owned(), nonce.try_into().map_err(|_| damaged())?);
        let why = "it is encrypted, and its key is destroyed or not here: give the operator's key with --key-file";
        let missing = || io::Error::new(io::ErrorKind::PermissionDenied, why);
        let key = keys.and_then(|keys| keys.output_key(&name)).ok_or_else(missing)?;
        Ok(Self { name, nonce, key })
    }

    pub(crate) fn head(&self) -> Vec<u8> {
        [MAGIC, self.name.as_bytes(), &self.nonce].concat()
    }

    /// Encrypts or decrypts the bytes of an output from a place on.
    pub(crate) fn apply(&self, place: u64, bytes: &mut [u8]) {
        let mut stream = blake3::Hasher::new_keyed(&self.key).update(&self.nonce).finalize_xof();
        stream.set_position(place);
        let mut block = [0; 1 << 12];
        for piece in bytes.chunks_mut(block.len()) {
            stream.fill(&mut block[..piece.len()]);
            piece.iter_mut().zip(block).for_each(|(byte, with)| *byte ^= with);
        }
    }
}

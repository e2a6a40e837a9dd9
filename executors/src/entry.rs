//! Further addresses of the page of a running server, each good for one use within minutes. The program that makes one shares
//! only a folder of the person's with the server.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use uuid::Uuid;

use crate::private::{PRIVATE, make_folder, write_whole};
use crate::programs::digest;

/// How long an address is good.
const LIFE: Duration = Duration::from_secs(600);
/// The file with the address of the server that began last.
const SERVER: &str = "server";

/// Notes the address of a server.
///
/// # Errors
/// The folder cannot be written.
pub fn note_server(folder: &Path, base: &str) -> io::Result<()> {
    make_folder(folder)?;
    write_whole(&folder.join(SERVER), base, PRIVATE, true).map(drop)
}

/// A new address of the page of the server that began last.
///
/// # Errors
/// No server has begun yet, or the folder cannot be written.
pub fn make(folder: &Path) -> io::Result<String> {
    let base = fs::read_to_string(folder.join(SERVER))?;
    for old in fs::read_dir(folder)?.flatten().filter(|entry| entry.file_name() != SERVER) {
        if !is_fresh(&old.path()) {
            fs::remove_file(old.path())?;
        }
    }
    let token = Uuid::new_v4().simple().to_string();
    write_whole(&folder.join(digest(std::slice::from_ref(&token))), "", PRIVATE, false)?;
    Ok(format!("{base}/?token={token}"))
}

/// True if a token is good; it is used up then.
#[must_use]
pub fn redeem(folder: &Path, token: &str) -> bool {
    let file = folder.join(digest(&[token.to_owned()]));
    let is_fresh = is_fresh(&file);
    fs::remove_file(file).is_ok() && is_fresh
}

fn is_fresh(file: &Path) -> bool {
    let age = file.metadata().and_then(|found| found.modified()).map(|at| at.elapsed().unwrap_or_default());
    age.is_ok_and(|age| age < LIFE)
}

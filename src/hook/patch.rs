//! The patch format of Codex's `apply_patch`: finds the files that a patch adds, updates, deletes and renames.

/// The files of a patch. A text that is not a patch has none; the host itself refuses it.
///
/// As in Codex, a header may be indented, except within an update, where an indented line is content.
pub fn files(patch: &str) -> Vec<&str> {
    let (mut files, mut is_in_update) = (Vec::new(), false);
    let mut lines = patch.lines().peekable();
    while let Some(line) = lines.next() {
        let header = if is_in_update { line.trim_end() } else { line.trim() };
        if let Some(path) = header.strip_prefix("*** Update File: ") {
            is_in_update = true;
            files.push(path);
            if let Some(to) = lines.peek().and_then(|next| next.trim().strip_prefix("*** Move to: ")) {
                files.push(to);
            }
        } else if let Some(path) =
            header.strip_prefix("*** Add File: ").or_else(|| header.strip_prefix("*** Delete File: "))
        {
            is_in_update = false;
            files.push(path);
        }
    }
    files
}

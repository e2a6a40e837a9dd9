//! Which code is a shell command, and which is only a name. In doubt it is a name.

use super::text::{Words, list};

/// Programs that begin a command.
static PROGRAMS: Words = Words::new(|| {
    list(
        "cargo|rustc|rustup|rustfmt|npm|npx|pnpm|yarn|bun|bunx|deno|node|tsc|eslint|prettier|jest|vitest|python|\
     python3|pip|pip3|pipx|uv|uvx|poetry|pytest|tox|ruff|black|mypy|django-admin|go|gofmt|java|javac|mvn|gradle|\
     ./gradlew|ruby|gem|bundle|rake|rails|php|composer|dotnet|swift|xcodebuild|make|cmake|ninja|bazel|just|gcc|\
     g++|clang|git|gh|glab|svn|hg|docker|docker-compose|podman|kubectl|helm|terraform|tofu|ansible|\
     ansible-playbook|vagrant|aws|gcloud|az|fly|flyctl|heroku|vercel|netlify|curl|wget|ssh|scp|rsync|psql|\
     createdb|dropdb|pg_dump|pg_restore|mysql|sqlite3|redis-cli|mongo|mongosh|sqlx|diesel|alembic|prisma|ls|cd|\
     cp|mv|rm|mkdir|rmdir|touch|cat|head|tail|grep|rg|find|sed|awk|sort|uniq|wc|chmod|chown|ln|tar|unzip|zip|\
     gzip|echo|printf|export|source|sudo|apt|apt-get|brew|dnf|yum|pacman|apk|systemctl|journalctl|service|kill|\
     ps|df|du|env|bash|sh|zsh|time|tee|xargs|openssl|ffmpeg|convert|jq|yq|test|act|pre-commit|nix|mix|elixir|\
     stack|cabal|ghc|zig|dart|flutter|ng|vue|vite|next|nuxt|turbo|nx|lerna|webpack|tailwindcss|supabase|firebase|\
     wrangler|playwright|cypress|hugo|mkdocs|sphinx-build|crontab|nginx|pm2|true|false|sleep|exit|date|pwd|whoami|\
         id|hostname|uname|which|seq|dd|tr|cut|paste|diff|cmp|patch|stat|readlink|realpath|mktemp|timeout|exec|set|\
         trap|wait|ulimit|nproc|free|lsof|ss|ping|dig|nc",
    )
});

/// Programs that are a command by themselves, without arguments.
const ALONE: &[&str] =
    &["make", "pytest", "ninja", "tox", "jest", "vitest", "mypy", "rustfmt", "tsc", "just", "eslint", "ls"];

/// Programs whose names are also plain words, so that what follows must look like arguments.
const WORDS: &[&str] = &[
    "go", "make", "find", "sort", "test", "time", "kill", "next", "service", "convert", "head", "tail", "source",
    "export", "touch", "just", "node", "java", "python", "swift", "ruby", "stack", "env", "find", "cat", "black",
    "act", "fly", "bundle", "docker", "vue", "rake", "true", "false", "sleep", "exit", "date", "cut", "paste", "patch",
    "id", "which", "set", "trap", "wait", "free", "timeout", "exec",
];

/// Methods that make code a route.
const METHODS: &[&str] = &["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

/// True when code between backticks is a command; `asked` when the sentence is about running it.
pub(super) fn is_command(code: &str, asked: bool) -> bool {
    let code = code.trim();
    let Some(first) = code.split_whitespace().next() else { return false };
    if code.len() > 2_000 || METHODS.contains(&first) || code.starts_with(['<', '{', '[', '"', '-', '@', '#', '|', '='])
    {
        return false;
    }
    let (program, rest) = without_assignments(code);
    if program.is_empty() {
        return false;
    }
    let bare = rest.is_empty();
    if let Some(local) = program.strip_prefix("./").or_else(|| program.strip_prefix("../")) {
        let script = std::path::Path::new(local)
            .extension()
            .is_none_or(|e| ["sh", "bash", "py", "rb", "pl", "bin", "run"].iter().any(|s| e == *s));
        return script && !local.is_empty() && (asked || !bare);
    }
    let absolute = ["/usr/", "/bin/", "/opt/", "/sbin/"].iter().any(|start| program.starts_with(start));
    if PROGRAMS.contains(&program) {
        return if bare {
            asked || (ALONE.contains(&program) && !WORDS.contains(&program))
        } else {
            !prose_like(program, rest) || asked
        };
    }
    if program.contains(['(', ')', '{', '}', ';', ',', '<', '>', '"', '\'', ':', '!']) {
        return false;
    }
    let piped = [" | ", " && ", " || ", " > ", " >> "].iter().any(|sign| code.contains(sign));
    let name =
        program.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.' | b'/'));
    let script = program.ends_with(".sh") && !program.starts_with('.');
    asked && (piped || absolute || (name && (!bare || script)))
}

/// The program and what follows, after `NAME=value` words.
fn without_assignments(code: &str) -> (&str, &str) {
    let mut rest = code;
    loop {
        let word = rest.split_whitespace().next().unwrap_or("");
        let after = rest[word.len()..].trim_start();
        let name = word.split('=').next().unwrap_or("");
        let assigns = name.len() < word.len()
            && !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
        if !assigns || after.is_empty() {
            return (word, after);
        }
        rest = after;
    }
}

/// `go to the page`, `make sure`: a plain sentence between backticks.
fn prose_like(program: &str, rest: &str) -> bool {
    let first = rest.split_whitespace().next().unwrap_or("");
    WORDS.contains(&program)
        && matches!(
            first,
            "to" | "the" | "a" | "an" | "sure" | "it" | "that" | "this" | "for" | "by" | "of" | "in" | "is"
        )
}

/// Languages of fences that are shell scripts.
pub(super) fn is_shell_language(language: &str) -> bool {
    matches!(language, "sh" | "bash" | "shell" | "zsh" | "console" | "shell-session" | "terminal" | "shellscript")
}

/// True when the text of a fence without a language reads like commands.
pub(super) fn reads_like_shell(body: &str) -> bool {
    let line =
        body.lines().map(str::trim).find(|line| !line.is_empty() && (!line.starts_with('#') || line.starts_with("#!")));
    line.is_some_and(|line| {
        line.starts_with("$ ") || line.starts_with("#!/") || is_command(line, line.starts_with("./"))
    })
}

/// The commands of a fence: prompts taken off and, where there are prompts, what was printed left out.
pub(super) fn script(body: &str) -> String {
    let prompted = body.lines().any(|line| line.trim_start().starts_with("$ "));
    if !prompted {
        return body.trim_end().trim_matches('\n').to_owned();
    }
    let mut lines = Vec::new();
    let mut goes_on = false;
    for line in body.lines() {
        let short = line.trim_start();
        match short.strip_prefix("$ ") {
            Some(command) => lines.push(command),
            None if goes_on => lines.push(line.trim_start_matches("> ")),
            None => continue,
        }
        goes_on = line.ends_with('\\');
    }
    lines.join("\n")
}

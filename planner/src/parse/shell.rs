//! Which code is a shell command, and which is only a name. In doubt it is a name.

use super::phrases::{Words, list};
use super::text::{first_word, holds};

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
         trap|wait|ulimit|nproc|free|lsof|ss|ping|dig|nc|\
         certbot|conda|mamba|nvm|pyenv|rbenv|asdf|hatch|pdm|pip-compile|pip-sync|sbt|lein|golangci-lint|staticcheck|\
         goreleaser|protoc|grpcurl|k6|locust|vegeta|newman|trivy|grype|syft|cosign|gpg|ssh-keygen|ssh-add|\
         ssh-copy-id|minikube|k3d|kustomize|skaffold|argocd|istioctl|eksctl|doctl|pulumi|cdk|serverless|mongodump|\
         mongorestore|mysqldump|clickhouse-client|cqlsh|etcdctl|rabbitmqctl|gunicorn|uvicorn|flask|celery|streamlit|\
         jupyter|dvc|mlflow|huggingface-cli|ollama|nvidia-smi|sbatch|launchctl|dpkg|rpm|zypper|iptables|ufw|ifconfig|\
         netstat|traceroute|nmap|tcpdump|strace|gdb|lldb|valgrind|wasm-pack|wasm-bindgen|sccache|bindgen|hyperfine|\
         tokei|cloc|shellcheck|shfmt|hadolint|yamllint|markdownlint|codespell|commitlint|rollup|esbuild|babel|\
         storybook|ionic|fastlane|adb|xcrun|codesign|msbuild|nuget|choco|winget|powershell|pwsh|robocopy|useradd|\
         usermod|passwd|umount|lsblk|dmesg|htop|nohup|tmux|basename|dirname|xxd|base64|md5sum|sha256sum|shasum|\
         gunzip|bzip2|zstd|pandoc|latexmk|pdflatex|xelatex|magick|exiftool|yt-dlp|sqlcmd|sqlplus|flyway|liquibase|\
         dbmate|sequelize|knex|phpunit|artisan|jekyll|eleventy|nodemon|ts-node|tsx|rspec|rubocop|mocha|karma|biome|\
         stylelint|pyright|flake8|isort|bandit|pylint|nosetests|twine|cookiecutter|copier|crewlog",
    )
});

/// Programs that are a command by themselves, without arguments.
static ALONE: Words = Words::new(|| list("make|pytest|ninja|tox|jest|vitest|mypy|rustfmt|tsc|just|eslint|ls"));

/// Programs whose names are also plain words, so that what follows must look like arguments.
static WORDS: Words = Words::new(|| {
    list(
        "go|make|find|sort|test|time|kill|next|service|convert|head|tail|source|export|touch|just|node|java|\
     python|swift|ruby|stack|env|find|cat|black|act|fly|bundle|docker|vue|rake|true|false|sleep|exit|date|\
     cut|paste|patch|id|which|set|trap|wait|free|timeout|exec",
    )
});

/// Of these any word can be the argument: they have subcommands, or take names of files.
static TAKERS: Words = Words::new(|| {
    list(
        "go|make|service|source|export|touch|just|node|java|python|swift|ruby|stack|cat|fly|bundle|docker|rake|\
     which|time|timeout|exec|env",
    )
});
/// Words that make a plain sentence of code, after any program.
static PROSE: Words = Words::new(|| list("is|are|was|must|should|will|command|commands|output|error|errors|=|==|:="));

/// Methods that make code a route.
static METHODS: Words = Words::new(|| list("GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS"));

/// Endings of files that can be run.
const SCRIPTS: &[&str] = &[".sh", ".bash", ".zsh", ".py", ".rb", ".pl", ".bin", ".run"];

/// How much a piece of code looks like a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A name, a type, a route, a flag, a file.
    Name,
    /// A single word that no program here has for a name.
    Word,
    /// Several words that could be a program and its arguments.
    Line,
    /// A program alone, which does little without arguments.
    Program,
    /// A program that is mostly used without arguments.
    Alone,
    /// A path of a program or a script, alone.
    Script,
    /// A program with its arguments, or a line of shell.
    Command,
}

/// What code between backticks looks like.
pub(super) fn shape(code: &str) -> Shape {
    let code = code.trim();
    if let Some(inner) = code.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        return if shape(inner) == Shape::Command { Shape::Command } else { Shape::Name };
    }
    let test = code.starts_with("[ ") && (code.ends_with(" ]") || holds(code, " ] "))
        || code.starts_with("[[ ") && holds(code, " ]]");
    let odd = code.starts_with(['<', '{', '[', '"', '-', '@', '#', '|', '=']);
    let Some(first) = Some(first_word(code)).filter(|first| !first.is_empty()) else { return Shape::Name };
    if code.len() > 2_000 || METHODS.contains(first) || (odd && !test) {
        return Shape::Name;
    }
    let looped = matches!(first, "for" | "if" | "while" | "until" | "case")
        && ["done", "fi", "esac"].iter().any(|end| code.ends_with(end));
    if test || looped {
        return Shape::Command;
    }
    let (program, rest) = without_assignments(code);
    let assigned = program.len() + rest.len() < code.len() && !code.starts_with(program);
    let (program, parted) = program.strip_suffix(';').map_or((program, false), |program| (program, true));
    if program.is_empty() || PROSE.contains(first_word(rest)) {
        return Shape::Name;
    }
    let compound = || parted || ["; ", " && ", " || ", " | ", " > ", " >> "].iter().any(|sign| holds(code, sign));
    let known = PROGRAMS.contains(program);
    let path = || is_script(program);
    if rest.is_empty() && !parted {
        return match () {
            () if known && assigned => Shape::Command,
            () if known && ALONE.contains(program) => Shape::Alone,
            () if known => Shape::Program,
            () if path() && assigned => Shape::Command,
            () if path() => Shape::Script,
            () if !is_name(program) || is_file(program) => Shape::Name,
            () if assigned => Shape::Command,
            () => Shape::Word,
        };
    }
    if (known && (takes(program, rest) || compound())) || path() || (assigned && is_name(program)) {
        return Shape::Command;
    }
    if known || absolute(program) || is_name(program) { Shape::Line } else { Shape::Name }
}

/// True when code is a command; `asked` when the text says that it is to be run.
pub(super) fn is_command(code: &str, asked: bool) -> bool {
    match shape(code) {
        Shape::Command | Shape::Alone => true,
        Shape::Script | Shape::Program | Shape::Line => asked,
        Shape::Word | Shape::Name => false,
    }
}

/// `./x`, `scripts/x.sh`, `x.sh`: a path that can be run.
fn is_script(program: &str) -> bool {
    let plain =
        program.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/' | b'~' | b'$'));
    let ends = SCRIPTS.iter().any(|end| program.len() > end.len() && program.ends_with(end));
    let local = program.strip_prefix("./").or_else(|| program.strip_prefix("../"));
    let bare = local.is_some_and(|local| !local.is_empty() && std::path::Path::new(local).extension().is_none());
    plain && (ends || bare || absolute(program) && !is_file(program))
}

/// True for `./x`, `x.sh`: what nobody would name but to run it.
pub(super) fn is_shell_script(code: &str) -> bool {
    code.starts_with("./") || [".sh", ".bash", ".zsh"].iter().any(|end| code.ends_with(end)) || absolute(code)
}

fn absolute(program: &str) -> bool {
    ["/usr/", "/bin/", "/opt/", "/sbin/"].iter().any(|start| program.starts_with(start))
}

/// True for what could be the name of a program.
fn is_name(program: &str) -> bool {
    program.starts_with(|c: char| c.is_ascii_lowercase() || matches!(c, '.' | '/' | '~'))
        && program
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.' | b'/' | b'~'))
}

/// `Cargo.toml`, `src/main.rs`, `docs/`: a file or a folder.
fn is_file(program: &str) -> bool {
    program.contains('/') && !absolute(program) || std::path::Path::new(program).extension().is_some()
}

/// True when what follows a program reads like its arguments: not "go to the page", not "find users".
fn takes(program: &str, rest: &str) -> bool {
    if !WORDS.contains(program) {
        return true;
    }
    if prose_like(program, rest) {
        return false;
    }
    let signs = |word: &str| word.len() == 1 || word.bytes().any(|b| !b.is_ascii_alphabetic());
    (TAKERS.contains(program) && rest.split_whitespace().count() < 4) || rest.split_whitespace().any(signs)
}

/// The program and what follows, after `NAME=value` words.
fn without_assignments(code: &str) -> (&str, &str) {
    let mut rest = code;
    loop {
        let word = first_word(rest);
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
    let first = first_word(rest);
    WORDS.contains(program)
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

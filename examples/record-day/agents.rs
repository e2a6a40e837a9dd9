//! The day of each agent.

use std::rc::Rc;

use crewlog_planner::crew::agents::{Activity, LeaveOutcome};
use crewlog_planner::crew::asks::Wanted;

use crate::Result;
use crate::actor::{Actor, Identity};
use crate::day::{Day, SECOND_TREE, TREE};
use crate::stage::Script;

const CLAUDE: Identity = Identity {
    name: "claude-1",
    program: "claude-code",
    model: Some("claude-opus-4-5"),
    capabilities: &["rust", "parsers", "review"],
    worktree: TREE,
    price: (1_500, 25_000),
};
const SCOUT: Identity = Identity { name: "scout", capabilities: &["search"], ..CLAUDE };
const CODEX: Identity = Identity {
    name: "codex-1",
    program: "codex",
    model: Some("gpt-5-codex"),
    capabilities: &["rust", "tests"],
    worktree: TREE,
    price: (500, 10_000),
};
const GEMINI: Identity = Identity {
    name: "gemini-1",
    program: "gemini-cli",
    model: Some("gemini-2.5-pro"),
    capabilities: &["docs", "research"],
    worktree: TREE,
    price: (500, 10_000),
};
const OPENCODE: Identity = Identity {
    name: "opencode-1",
    program: "opencode",
    model: Some("qwen3-coder-480b"),
    capabilities: &["rust", "zones"],
    worktree: SECOND_TREE,
    price: (220, 1_000),
};
const CI: Identity = Identity {
    name: "ci-1",
    program: "script",
    model: None,
    capabilities: &["ci"],
    worktree: "build-1:/srv/ci/almanac",
    price: (0, 0),
};

/// The agents, in parallel.
pub fn scripts(day: &Rc<Day>) -> Vec<Script> {
    vec![
        Box::pin(claude(day.clone())),
        Box::pin(codex(day.clone())),
        Box::pin(gemini(day.clone())),
        Box::pin(gemini_again(day.clone())),
        Box::pin(opencode(day.clone())),
        Box::pin(ci(day.clone())),
    ]
}

async fn claude(day: Rc<Day>) -> Result {
    day.time.until_minute(4).await;
    let mut me = Actor::join(&day, &CLAUDE, 1, None).await?;
    me.work("T01").await?;
    me.begin("T02", true).await?;
    me.go_on("T02", 0, 1).await?;
    scout(&day, &mut me).await?;
    me.go_on("T02", 1, usize::MAX).await?;
    me.finish("T02").await?;
    let body =
        "`WeekDate::new(year, week, weekday)` checks week 53. The year is the year of the week, not of the calendar.";
    me.send("everyone", "WeekDate is in src/week.rs", body, None, false).await?;
    me.begin("T03", true).await?;
    me.go_on("T03", 0, 1).await?;
    me.reply("codex-1", "Year of a week date", "2026: 1 January 2027 is a Friday, so it belongs to week 53 of 2026.")
        .await?;
    me.go_on("T03", 1, 4).await?;
    me.lease(&["src/error.rs"], "Positions in parse errors", None).await?;
    me.go_on("T03", 4, usize::MAX).await?;
    me.release_all().await?;
    me.finish("T03").await?;
    let why = "Times, weeks and dates each read digits in their own way.";
    me.add_task("B5", "Share the reader of digits", &["src/parse/digits.rs", "src/parse/time.rs"], Some("P2"), why)
        .await?;
    me.work("T08").await?;
    me.reply(
        "ci-1",
        "Panic in the week parser",
        "It cut a text inside a character. T08 replaced that code, please run the fuzzer again.",
    )
    .await?;
    me.work("B5").await?;
    me.work("Z06").await?;
    me.work("B12").await?;
    me.begin("T14", true).await?;
    me.go_on("T14", 0, 4).await?;
    let text = "Which date does the changelog get for 1.4.0?";
    me.ask_and_wait(Wanted::Answer, text, &["today", "next Monday", "leave it open"], Some("T14")).await?;
    me.go_on("T14", 4, usize::MAX).await?;
    me.finish("T14").await?;
    let why = "It panics only in debug builds, and the documentation says never.";
    me.add_task("B13", "Describe the panics of `WeekDate::new`", &["src/week.rs"], None, why).await?;
    me.send("codex-1", "Changelog", "It is complete. Please say if your error sources are missing.", None, true)
        .await?;
    me.reply("gemini-1", "Words of the guide", "Yes, and `%G` the year of the week.").await?;
    me.begin("B4", true).await?;
    me.go_on("B4", 0, 3).await?;
    me.pass(600).await
}

/// A subagent looks for callers and leaves.
async fn scout(day: &Rc<Day>, parent: &mut Actor) -> Result {
    let mut scout = Actor::join(day, &SCOUT, 1, Some("claude-1")).await?;
    scout.say(Activity::Thinking, None, Some("Looking for code that compares weeks as numbers")).await?;
    scout.pass(5).await?;
    scout.say(Activity::Working, None, Some("Reading 14 callers of `Date::week`")).await?;
    parent.pass(4).await?;
    scout.pass(3).await?;
    let found = "`Date::week` has 14 callers, and three of them subtract week numbers across the turn of a year.";
    scout.send("claude-1", "Callers of Date::week", found, None, false).await?;
    let (note, next_step) = (found.to_owned(), "Change the three callers".to_owned());
    scout.day.crew.leave(&scout.caller, LeaveOutcome::Success, note, next_step).await?;
    Ok(())
}

async fn codex(day: Rc<Day>) -> Result {
    day.time.until_minute(8).await;
    let mut me = Actor::join(&day, &CODEX, 1, None).await?;
    me.work("B3").await?;
    me.begin("B7", true).await?;
    me.go_on("B7", 0, 2).await?;
    let body = "Is the year of 2027-01-01 in `WeekDate` 2026 or 2027? My conversion depends on it.";
    let thread = me.send("claude-1", "Year of a week date", body, None, false).await?;
    me.go_on("B7", 2, usize::MAX).await?;
    me.finish("B7").await?;
    me.begin("T05", true).await?;
    me.go_on("T05", 0, 2).await?;
    let body = "Thanks. I use the year of the week, and add 2027-01-01 to the tests.";
    me.send("claude-1", "Year of a week date", body, Some(thread), false).await?;
    me.is_refused("src/parse/mod.rs").await?;
    me.go_on("T05", 2, 4).await?;
    me.lease(&["src/error.rs"], "An error for days out of range", Some(40)).await?;
    me.go_on("T05", 4, usize::MAX).await?;
    me.finish("T05").await?;
    me.work("Z05").await?;
    me.release_all().await?;
    me.work("T06").await?;
    me.edits_unleased("src/format.rs").await?;
    let body = "The sign of years before 0 was lost. I corrected it in src/format.rs without a lease, sorry: one line.";
    me.send("everyone", "A line in src/format.rs", body, None, true).await?;
    me.begin("T12", true).await?;
    me.go_on("T12", 2, usize::MAX).await?;
    me.finish("T12").await?;
    let why = "A clean build takes 21 s, and most of it is one crate.";
    me.add_task("B17", "Make a clean build faster", &["Cargo.toml"], None, why).await?;
    me.work("B17").await?;
    let text = "The branch weeks-draft is merged. May I delete it on the server?";
    me.ask_and_wait(Wanted::Permission, text, &[], None).await?;
    me.reply("ci-1", "Casts in src/convert.rs", "They are safe, and the next change of that file says so.").await?;
    me.work("B18").await?;
    me.begin("B14", true).await?;
    me.go_on("B14", 0, 3).await?;
    let text = "May I push the change of .github/workflows/ci.yml to main?";
    me.ask(Wanted::Permission, text, &[], Some("B14")).await?;
    me.pass(600).await
}

/// Its terminal is closed in the middle of a task.
async fn gemini(day: Rc<Day>) -> Result {
    day.time.until_minute(10).await;
    let mut me = Actor::join(&day, &GEMINI, 1, None).await?;
    me.work("Z01").await?;
    me.is_refused("src/week.rs").await?;
    me.work("Z02").await?;
    me.lease(&["docs/guide/index.md"], "A list of the chapters", None).await?;
    let text = "The list of zones has official names and short ones. Which does the guide show first?";
    me.ask_and_wait(Wanted::Answer, text, &["official names", "short names"], None).await?;
    me.release_all().await?;
    me.work("T04").await?;
    let body = "Week dates can be written now. %G is the year of the week, %Y is not.";
    me.send("everyone", "New format items", body, None, false).await?;
    me.begin("T12", true).await?;
    me.go_on("T12", 0, 2).await
}

async fn gemini_again(day: Rc<Day>) -> Result {
    day.time.until_minute(329).await;
    let mut me = Actor::join(&day, &GEMINI, 2, None).await?;
    me.work("Z09").await?;
    let why = "Readers of the chapter on weeks do not find the one on formats.";
    me.add_task("B8", "Link every chapter from the first page of the guide", &["docs/guide/index.md"], None, why)
        .await?;
    me.work("B8").await?;
    me.say(Activity::Thinking, None, Some("Reading the report about 29 February")).await?;
    let body = "The guide calls `%Y` the year. With week dates, should it say the year of the calendar?";
    me.send("claude-1", "Words of the guide", body, None, false).await?;
    day.time.until_minute(444).await;
    me.begin("B9", false).await?;
    me.go_on("B9", 0, 3).await?;
    me.pass(600).await
}

async fn opencode(day: Rc<Day>) -> Result {
    day.time.until_minute(17).await;
    let mut me = Actor::join(&day, &OPENCODE, 1, None).await?;
    me.work("B1").await?;
    me.work("B2").await?;
    me.begin("Z04", true).await?;
    me.go_on("Z04", 0, 3).await?;
    let text = "May I add the crate phf_codegen? The perfect hash needs it at build time.";
    me.ask_and_wait(Wanted::Permission, text, &[], Some("Z04")).await?;
    me.go_on("Z04", 3, usize::MAX).await?;
    me.finish("Z04").await?;
    me.send("ci-1", "Build of the tables", "The build now needs phf_codegen from the mirror.", None, true).await?;
    me.work("F11").await?;
    me.work("FZ05").await?;
    me.work("FZ06").await?;
    let body = "Both ways work. Embedded tables add 36,912 bytes; the other way needs a database, which small containers lack.";
    me.send("everyone", "Two ways to find zones", body, None, false).await?;
    me.work("B6").await?;
    me.begin("B11", true).await?;
    me.go_on("B11", 0, 3).await?;
    me.fail("B11", "No machine here is big-endian, and the emulator cannot start in the container.").await?;
    me.reply("codex-1", "A line in src/format.rs", "I had the same line on my branch, the merge is clean.").await?;
    me.work("B16").await?;
    let why = "Programs that store week dates need a stable form.";
    me.add_task("B19", "Serialize week dates", &["src/serde.rs"], Some("P1"), why).await?;
    me.work("B19").await?;
    me.is_busy = true;
    let why = "The binary form of dates takes 12 bytes where 4 would do.";
    me.add_task("B21", "Shorten the binary form of dates", &["src/serde.rs"], None, why).await?;
    me.begin("B21", true).await?;
    me.edits_unleased("docs/guide/serde.md").await?;
    me.go_on("B21", 0, 2).await?;
    let text =
        "A shorter binary form breaks stored dates. Do we add a version byte, or a second form beside the old one?";
    me.ask(Wanted::Answer, text, &["a version byte", "a second form"], Some("B21")).await?;
    me.pass(600).await
}

/// A script that watches the builds.
async fn ci(day: Rc<Day>) -> Result {
    day.time.until_minute(1).await;
    let mut me = Actor::join(&day, &CI, 1, None).await?;
    me.say(Activity::Working, None, Some("Watching main")).await?;
    me.pass(159).await?;
    let why = "41 ns on Monday, 44 ns today, ten runs each.";
    me.add_task("B6", "The bench of the formatter is 8 % slower since Monday", &["src/format.rs"], Some("P2"), why)
        .await?;
    me.pass(36).await?;
    let why = "The fuzzer of week dates found a panic within eleven minutes.";
    me.add_task("B10", "Minimise the input that the fuzzer found", &["fuzz/corpus/**"], Some("P1"), why).await?;
    let body = "The fuzzer found a panic in src/parse/week.rs, line 88. The input is fuzz/artifacts/week/crash-3f0c.";
    let thread = me.send("claude-1", "Panic in the week parser", body, None, true).await?;
    me.work("B10").await?;
    me.say(Activity::Working, None, Some("Watching main")).await?;
    me.pass(40).await?;
    me.read_mail().await?;
    let body = "48 million runs without a panic. The bench of the parser is 61 % faster, too.";
    me.send("claude-1", "Panic in the week parser", body, Some(thread), false).await?;
    me.pass(30).await?;
    let why = "The release notes promise it, and nothing tests it.";
    me.add_task("B11", "Run the tests on a big-endian machine", &["scripts/big-endian"], None, why).await?;
    me.pass(60).await?;
    me.read_mail().await?;
    me.send("rust", "Nightly build", "Clippy of tomorrow warns about three casts in src/convert.rs.", None, false)
        .await?;
    me.say(Activity::Idle, None, Some("All builds are green")).await?;
    loop {
        me.pass(20).await?;
        me.read_mail().await?;
    }
}

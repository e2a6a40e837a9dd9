//! The dashboard in a browser, as a person uses it.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::faults::Fault;
use super::page::{Browser, DEADLINE, Device, Page, Preference};
use super::proxy::Proxy;
use crate::cli::scene::{Running, Scene};

/// A server, and the address of its page.
pub struct Served {
    pub scene: Scene,
    _server: Running,
    pub person: String,
}

impl Served {
    /// A server on the log of a scene.
    pub fn on(scene: Scene) -> Self {
        Self::begin(scene, &["serve", "--listen", "127.0.0.1:0", "-o", "jsonl"])
    }

    /// The recorded day, with the clock at its end.
    pub fn demo() -> Self {
        Self::begin(Scene::new(), &["demo", "--no-open", "-o", "jsonl"])
    }

    fn begin(scene: Scene, words: &[&str]) -> Self {
        let mut server = scene.start(words);
        let printed: Value = serde_json::from_str(&server.stdout.line()).unwrap();
        let person = printed["person"].as_str().unwrap().to_owned();
        Self { scene, _server: server, person }
    }

    pub fn open(&self) -> Page {
        let page = Browser::start().open(&self.person, &[]);
        page.wait_for("document.querySelector('#main')", DEADLINE);
        page
    }

    pub fn url(&self, rest: &str) -> String {
        format!("{}{rest}", self.person.split("/?token=").next().unwrap())
    }
}

pub fn count(page: &Page, selector: &str) -> u64 {
    page.eval(&format!("document.querySelectorAll({}).length", json!(selector))).as_u64().unwrap()
}

pub fn waits_for(page: &Page, selector: &str) {
    page.wait_for(&format!("document.querySelector({})", json!(selector)), DEADLINE);
}

pub fn waits_until_gone(page: &Page, selector: &str) {
    page.wait_for(&format!("!document.querySelector({})", json!(selector)), DEADLINE);
}

#[test]
fn a_run_is_watched_to_its_end() {
    let scene = Scene::with_repository();
    scene.run(&["init"]).expect(0);
    scene.write("gate.md", "# Gate\n1. Run `until [ -e go ]; do sleep 0.05; done`\n2. Run `true`\n");
    let served = Served::on(scene);
    let page = served.open();
    waits_for(&page, "#empty pre");
    let run = served.scene.start(&["run", "gate.md", "--yes", "-q"]);
    waits_for(&page, "[data-listed^='gate']");
    assert_eq!(page.eval("location.pathname"), "/", "a new plan does not change the page");
    // The row is at rest once its first task runs: it moves no more under the pointer.
    waits_for(&page, "[data-listed^='gate'] .s-running");
    page.click("[data-listed^='gate'] a");
    waits_for(&page, "[data-task='1'][data-state='running']");
    waits_for(&page, "[data-task='2'][data-state='planned']");
    served.scene.write("go", "");
    waits_for(&page, "[data-plan-status='done']");
    run.finish().expect(0);
    assert_eq!(count(&page, "[data-task][data-state='done']"), 2);
    assert_eq!(page.faults(), []);
}

/// A plan whose second task waits for an answer.
fn with_a_question() -> Served {
    let scene = Scene::with_repository();
    scene.run(&["task", "add", "Choose a name", "--new"]).expect(0);
    scene.run(&["task", "add", "Use the name", "--after", "1"]).expect(0);
    scene.run(&["task", "ask", "backlog/2", "Which name?"]).expect(0);
    Served::on(scene)
}

#[test]
fn a_question_is_answered_in_place() {
    let served = with_a_question();
    let page = served.open();
    waits_for(&page, "[data-kind='question']");
    page.type_text("[data-kind='question'] input[name='text']", "Ada");
    page.click("[data-kind='question'] button");
    waits_until_gone(&page, "[data-kind='question']");
    assert_eq!(served.scene.show("backlog")["questions"][0]["answer"], "Ada");
    assert_eq!(page.faults(), []);
}

#[test]
fn a_new_item_is_notified_on_request_and_counted_in_the_title() {
    let served = with_a_question();
    let page = served.open();
    page.allow_notifications();
    page.goto(&served.url("/"));
    let spied = "window.told = []; window.Notification = new Proxy(Notification, {
        construct(of, [title, options]) { told.push(options.body); return new of(title, options); } }); 0";
    page.eval(spied);
    assert_eq!(page.eval("document.title"), "(1) crewlog");
    let ask = |question: &str| drop(served.scene.run(&["task", "ask", "backlog/2", question]).expect(0));
    let title = |n: usize| drop(page.wait_for(&format!("document.title === '({n}) crewlog'"), DEADLINE));
    ask("Which size?");
    title(2);
    assert_eq!(page.eval("told"), json!([]), "nobody has asked for it");
    page.click("[data-notify-button]");
    waits_for(&page, "[data-notify-button][aria-pressed='true']");
    ask("Which taste?");
    page.wait_for("told.length === 1", DEADLINE);
    assert_eq!(page.eval("told"), json!(["3 items wait for you"]));
    // The choice outlives the page, and the button is drawn with it.
    page.goto(&served.url("/"));
    waits_for(&page, "[data-notify-button][aria-pressed='true']");
    page.eval(spied);
    served.scene.run(&["answer", "backlog/q1", "Ada"]).expect(0);
    title(2);
    page.click("[data-notify-button]");
    waits_for(&page, "[data-notify-button][aria-pressed='false']");
    ask("Which smell?");
    title(3);
    assert_eq!(page.eval("told"), json!([]), "an item that goes is no news, and it is switched off");
    assert_eq!(page.faults(), []);
}

#[test]
fn without_javascript_every_form_works() {
    let served = with_a_question();
    let page = served.open();
    page.without_scripts();
    page.goto(&served.url("/"));
    assert_eq!(page.eval("document.scripts.length > 0"), true);
    page.type_text("[data-kind='question'] input[name='text']", "Ada");
    page.press("Enter");
    waits_until_gone(&page, "[data-kind='question']");
    assert_eq!(served.scene.show("backlog")["questions"][0]["answer"], "Ada");
    page.goto(&served.url("/plans/backlog"));
    page.click("[data-key='change'] summary");
    page.type_text("form[action='/do/task-add'] input[name='text']", "Tell the others");
    page.press("Enter");
    waits_for(&page, "[data-task='3']");
    assert_eq!(page.eval("location.pathname"), "/plans/backlog");
    assert!(page.faults().iter().all(|fault| matches!(fault, Fault::Request { .. })), "only its scripts are missing");
}

#[test]
fn what_would_run_is_shown_before_it_may() {
    let scene = Scene::with_repository();
    scene.run(&["task", "add", "One", "--new"]).expect(0);
    let served = Served::on(scene);
    let page = served.open();
    page.goto(&served.url("/plans/backlog"));
    page.click("[data-key='change'] summary");
    page.type_text("form[action='/do/task-add'] input[name='text']", "Run `rm -rf build`");
    page.press("Enter");
    waits_for(&page, ".framed pre");
    assert!(page.eval("document.body.innerText").as_str().unwrap().contains("rm -rf build"));
    assert_eq!(count(&page, "header nav a"), 5, "the question has the header of all pages");
    assert_eq!(served.scene.show("backlog")["tasks"].as_array().unwrap().len(), 1);
    page.click(".framed button.pri");
    waits_for(&page, "[data-task='2']");
    assert_eq!(page.eval("location.pathname"), "/plans/backlog");
    assert_eq!(served.scene.show("backlog")["tasks"][1]["command"], "rm -rf build");
}

#[test]
fn the_slider_shows_what_was_and_a_fork_begins_there() {
    let served = Served::demo();
    let page = served.open();
    page.goto(&served.url("/plans/iso-week-dates-7k2m"));
    let head: i64 = page.eval("+document.querySelector('#main').dataset.at").as_i64().unwrap();
    let at = "document.querySelector('#main').dataset";
    let slide = |to: i64| {
        page.eval(&format!(
            "(() => {{ const s = document.querySelector('[data-slider]'); s.value = {to};
               for (const kind of ['input', 'change']) s.dispatchEvent(new Event(kind, {{ bubbles: true }})); }})()"
        ));
        page.wait_for(&format!("{at}.live === 'false' && Math.abs({at}.at - {to}) < 30"), DEADLINE);
    };
    slide(500);
    waits_for(&page, "body.past");
    let shown = page.eval(&format!("+{at}.at")).as_i64().unwrap();
    let url = page.eval("location.pathname + location.search").as_str().unwrap().to_owned();
    assert_eq!(url, "/plans/iso-week-dates-7k2m?at=500");
    waits_for(&page, "details.time[open]");
    let disabled = "[...document.querySelectorAll('#needs button, #plan form[action^=\"/do/\"] button')].filter((b) => !b.matches(':disabled')).map((b) => b.closest('form').action)";
    let enabled = page.eval(disabled);
    assert!(
        enabled.as_array().unwrap().iter().all(|action| action.as_str().unwrap().ends_with("/do/fork")),
        "{enabled}"
    );
    let statuses =
        "JSON.stringify([...document.querySelectorAll('[data-task]')].map((t) => [t.dataset.task, t.dataset.state]))";
    let before = page.eval(statuses);

    // The same address shows the same.
    page.goto(&served.url(&url));
    assert_eq!(page.eval(&format!("+{at}.at")).as_i64(), Some(shown));
    assert_eq!(page.eval(statuses), before);
    page.press("ArrowLeft");
    page.wait_for(&format!("{at}.at < {shown}"), DEADLINE);
    page.press("l");
    page.wait_for(&format!("{at}.live === 'true' && {at}.at >= {head}"), DEADLINE);

    slide(500);
    page.click("[data-key='fork'] summary");
    page.type_text("form[action='/do/fork'] input[name='reason']", "to try another way");
    page.click("form[action='/do/fork'] button");
    let loaded = "/^.plans.iso-week-dates-fork-/.test(location.pathname) && document.readyState === 'complete'";
    page.wait_for(loaded, DEADLINE);
    // Finished tasks stay done; the next ones may have begun by now.
    let done = |tasks: &Value| -> Vec<Value> {
        let tasks: Vec<Value> = serde_json::from_str(tasks.as_str().unwrap()).unwrap();
        tasks.into_iter().filter(|task| task[1] == "done").collect()
    };
    assert_eq!(done(&page.eval(statuses)), done(&before), "it has what its plan had");
    assert_ne!(done(&before), Vec::<Value>::new());
    assert_eq!(page.faults(), []);
}

#[test]
fn a_conflict_comes_and_goes() {
    let served = Served::demo();
    let page = served.open();
    let conflict = "[data-kind='conflict']";
    waits_for(&page, conflict);
    page.goto(&served.url("/?at=100"));
    assert_eq!(count(&page, conflict), 0);
    page.goto(&served.url("/"));
    waits_for(&page, conflict);
    page.click(&format!("{conflict} button"));
    waits_until_gone(&page, conflict);
    assert_eq!(page.faults(), []);
}

#[test]
fn a_page_that_lost_its_connection_comes_back_and_has_missed_nothing() {
    let scene = Scene::with_repository();
    scene.run(&["task", "add", "One", "--new"]).expect(0);
    let proxy = Proxy::start();
    scene.write("crewlog.toml", format!("[serve]\nhosts = [\"127.0.0.1:{}\"]\n", proxy.port));
    let served = Served::on(scene);
    proxy.lead_to(served.url("").rsplit(':').next().unwrap().parse().unwrap());
    let page = Browser::start()
        .open(&served.person.replace(served.url("").rsplit(':').next().unwrap(), &proxy.port.to_string()), &[]);
    page.wait_for("document.querySelector('[data-listed]')", DEADLINE);
    page.click("[data-listed='backlog'] a");
    waits_for(&page, "[data-task='1']");
    page.wait_for("document.querySelector('.live')", DEADLINE);
    proxy.cut();
    page.wait_for("!document.querySelector('#lost').hidden", DEADLINE);
    served.scene.run(&["task", "done", "backlog/1"]).expect(0);
    served.scene.run(&["task", "add", "Two"]).expect(0);
    proxy.join();
    waits_for(&page, "[data-task='2']");
    waits_for(&page, "[data-task='1'][data-state='done']");
    page.wait_for("document.querySelector('#lost').hidden", DEADLINE);
}

#[test]
fn hostile_texts_are_harmless_everywhere() {
    let scene = Scene::with_repository();
    let markup = "<img src=x onerror=\"window.hit=1\"><script>window.hit=1</script></script></title></svg>\"'><b>";
    let hostile = format!("{markup} \u{202e}desrever\u{202c} \u{0007}\u{200b} {{{{7*7}}}} ${{7*7}}");
    scene.run(&["task", "add", &hostile, "--new"]).expect(0);
    scene.write("long.md", format!("# {hostile}\n1. {hostile} {}\n2. After it\n", "long ".repeat(200_000)));
    let made = scene.run(&["run", "long.md", "--detach", "--yes", "-q", "-o", "json"]).expect(0).json();
    let plan = made["plan"].as_str().unwrap().to_owned();
    scene.run(&["task", "ask", &format!("{plan}/2"), &hostile]).expect(0);
    scene.run(&["task", "fail", &format!("{plan}/1"), &format!("{hostile} {}", "x".repeat(30_000))]).expect(0);
    let served = Served::on(scene);
    let page = served.open();
    for rest in [
        "/",
        "/plans",
        "/files",
        "/events",
        "/statistics",
        "/plans/PLAN",
        "/plans/PLAN/tasks",
        "/plans/PLAN/events",
        "/plans/PLAN?task=1",
        "/plans/PLAN/events?event=1",
        "/plans/PLAN?event=3",
        "/plans/PLAN?lanes=task",
        "/plans/PLAN?with=1",
        "/events?q=%3Cscript%3E",
        "/?said=%3Cscript%3Ewindow.hit%3D1%3C%2Fscript%3E",
        "/plans/PLAN?at=%3Cb%3E",
    ] {
        page.goto(&served.url(&rest.replace("PLAN", &plan)));
        assert_eq!(page.eval("window.hit ?? null"), Value::Null, "{rest}");
        assert_eq!(count(&page, "#main img, #main script, #main b b"), 0, "{rest}");
        let bytes = page.eval("document.documentElement.outerHTML.length").as_u64().unwrap();
        assert!(bytes < 400_000, "{rest}: {bytes} characters");
        let text = page.eval("document.body.innerText").as_str().unwrap().to_owned();
        assert!(!text.contains(['\u{202e}', '\u{0007}']), "{rest}: control characters are not shown as they are");
        assert_eq!(page.overlaps(), [], "{rest}");
    }
    assert_eq!(page.faults(), []);
}

/// The addresses of all views.
const VIEWS: [&str; 15] = [
    "/",
    "/plans",
    "/files",
    "/events?event=900",
    "/statistics",
    "/?at=700",
    "/plans/iso-week-dates-7k2m",
    "/plans/iso-week-dates-7k2m?lanes=task",
    "/plans/iso-week-dates-7k2m/tasks?task=T14",
    "/plans/iso-week-dates-7k2m/events",
    "/plans/iso-week-dates-7k2m?at=500&with=400",
    "/plans/built-in-time-zones-3fqa",
    "/plans/built-in-time-zones-3fqa?task=Z08",
    "/plans/built-in-time-zones-fork-9w4d?with=355",
    "/plans/backlog",
];

#[test]
fn each_view_is_readable_at_each_size_and_in_each_scheme() {
    let served = Served::demo();
    let page = served.open();
    let keeps = std::env::var_os("CREWLOG_SCREENSHOTS").map(PathBuf::from);
    for (width, height, device) in [(1440, 900, Device::Desktop), (390, 844, Device::Phone)] {
        page.resize(width, height, device);
        for (scheme, preferences) in
            [("light", &[Preference::ReducedMotion][..]), ("dark", &[Preference::ReducedMotion, Preference::Dark])]
        {
            page.prefer(preferences);
            for (n, view) in VIEWS.iter().enumerate() {
                page.goto(&served.url(view));
                if let Some(folder) = &keeps {
                    fs::create_dir_all(folder).unwrap();
                    let tall = page.eval("document.documentElement.scrollHeight").as_u64().unwrap();
                    page.resize(width, u32::try_from(tall.clamp(300, 4_000)).unwrap(), device);
                    page.screenshot(folder.join(format!("{n:02}-{width}-{scheme}.png")));
                    page.resize(width, height, device);
                }
                // Widths change the places of texts, schemes their colours, and both are the same to a screen reader.
                if scheme == "light" {
                    assert_eq!(page.overlaps(), [], "{view} {width}");
                }
                if width == 1440 {
                    assert_eq!(page.contrast(), [], "{view} {scheme}");
                }
                if (width, scheme) == (1440, "light") {
                    assert_eq!(page.axe(), [], "{view}");
                }
            }
        }
    }
    assert_eq!(page.faults(), []);
}

#[test]
fn everything_is_reached_by_keyboard() {
    let served = Served::demo();
    let page = served.open();
    let reached = |parts: &[&str]| {
        let mut seen = Vec::new();
        for _ in 0..200 {
            page.press("Tab");
            let on = "(() => { const e = document.activeElement; return e === document.body ? null : (e.getAttribute('href') || e.name || e.textContent).slice(0, 60) + '|' + (e.closest('.part') || e).id; })()";
            let Value::String(on) = page.eval(on) else { break };
            // Links of a drawing have a line around their shape instead.
            let is_seen = "(() => { const e = document.activeElement; return getComputedStyle(e).outlineStyle !== 'none' || [...e.querySelectorAll('rect, path')].some(shape => getComputedStyle(shape).strokeWidth === '3px'); })()";
            assert_eq!(page.eval(is_seen), true, "the focus is seen on {on}");
            seen.push(on);
        }
        assert!(page.eval("document.activeElement === document.body").as_bool().unwrap(), "the last one is reached");
        for part in parts {
            assert!(seen.iter().any(|on| on.ends_with(part)), "{part} is not reached: {seen:#?}");
        }
    };
    reached(&["top", "time", "needs", "plans", "agents"]);
    page.goto(&served.url("/plans/iso-week-dates-7k2m?at=791&task=T15"));
    reached(&["top", "time", "notice", "plan", "timeline", "graph", "tasks", "inspector"]);
}

#[test]
fn a_page_that_is_hidden_or_left_gives_its_stream_back_and_goes_on_when_it_is_seen() {
    let served = Served::demo();
    let page = served.open();
    page.eval("window.streams = []; const Real = EventSource; window.EventSource = class extends Real { constructor(url) { super(url); window.streams.push(this); } }; 1");
    let states = |page: &Page| page.eval("window.streams.map(stream => stream.readyState === 2)");
    let see = "Object.defineProperty(document, 'hidden', { configurable: true, get: () => HIDDEN }); document.dispatchEvent(new Event('visibilitychange')); 1";
    page.eval(&see.replace("HIDDEN", "false"));
    assert_eq!(states(&page), json!([false]));
    page.eval(&see.replace("HIDDEN", "true"));
    assert_eq!(states(&page), json!([true]), "a hidden page has no stream");
    page.eval(&see.replace("HIDDEN", "false"));
    assert_eq!(states(&page), json!([true, false]), "it has one again");
    page.eval("dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true })); 1");
    assert_eq!(states(&page), json!([true, true]), "nor has one that is kept for going back");
    page.eval("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true })); 1");
    assert_eq!(states(&page), json!([true, true, false]));
}

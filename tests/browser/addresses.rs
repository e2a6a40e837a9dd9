//! Where things are: an address for each plan, the count of what waits, panels, the bar of time, and framed pages.

use crewlog_planner::crew::asks::{Ask, Wanted};
use serde_json::{Value, json};

use super::dashboard::{Served, count, waits_for, waits_until_gone};
use super::page::{Browser, DEADLINE, Device, Page};
use crate::cli::inbox::{ask, crew, joined, lease};
use crate::cli::scene::Scene;

const PLAN: &str = "/plans/iso-week-dates-7k2m";

fn path(page: &Page) -> String {
    page.eval("location.pathname").as_str().unwrap().to_owned()
}

/// The addresses of the links and forms in some parts of a page.
fn addresses(page: &Page, selector: &str) -> Vec<String> {
    let found = page.eval(&format!(
        "[...document.querySelectorAll({})].flatMap((part) => [...part.querySelectorAll('a[href],form[method=get],[name=back]')])
            .map((it) => it.getAttribute('href') || it.getAttribute('action') || it.value)",
        json!(selector)
    ));
    serde_json::from_value(found).unwrap()
}

#[test]
fn no_link_of_a_plan_leads_to_another_plan_or_moment() {
    let served = Served::demo();
    let page = served.open();
    for at in ["", "100", "800", "1200", "1801", "2400"] {
        for view in ["", "?lanes=task", "?task=T15", "?event=20", "?with=400", "/tasks", "/tasks?task=T01", "/events"] {
            let joint = if view.contains('?') { '&' } else { '?' };
            let address = if at.is_empty() { format!("{PLAN}{view}") } else { format!("{PLAN}{view}{joint}at={at}") };
            page.goto(&served.url(&address));
            let parts =
                "#time,#notice,#compare,#plan .acts,#plan .tabs,#plan .w,#timeline,#graph,#tasks,#events,#inspector";
            let links = addresses(&page, parts);
            assert!(links.len() > 10, "{address}: {links:?}");
            for link in links {
                assert!(
                    link == PLAN || link.starts_with(&format!("{PLAN}/")) || link.starts_with(&format!("{PLAN}?")),
                    "{address}: {link}"
                );
            }
            // In the past every link keeps the position, but those to other positions and to the present.
            let kept = addresses(&page, "header nav,#plan .tabs,#plan .crumb,#timeline,#graph,#tasks,#inspector");
            let stays = |link: &String| at.is_empty() || link.contains(&format!("at={at}"));
            assert_eq!(kept.iter().filter(|link| !stays(link)).collect::<Vec<_>>(), Vec::<&String>::new(), "{address}");
        }
    }
    assert_eq!(page.faults(), []);
}

#[test]
fn keys_clicks_and_new_plans_leave_the_plan_as_it_is() {
    let served = Served::demo();
    let page = served.open();
    page.goto(&served.url(PLAN));
    let is_past = |page: &Page| page.wait_for("document.body.classList.contains('past')", DEADLINE);
    page.press("ArrowLeft");
    is_past(&page);
    waits_for(&page, "[data-step='failure-before']");
    page.click("[data-step='failure-before']");
    page.wait_for("+new URLSearchParams(location.search).get('at') < 2000", DEADLINE);
    page.click(".marks a.m-question");
    page.wait_for("document.querySelector('details.time').open", DEADLINE);
    assert_eq!(path(&page), PLAN);
    page.eval("document.activeElement.blur()");
    page.press("l");
    page.wait_for(
        "document.querySelector('#main').dataset.live === 'true' && !document.querySelector('details.time').open",
        DEADLINE,
    );
    assert_eq!(page.eval("location.pathname + location.search"), PLAN);
    let log = page.eval("document.querySelector('#main').dataset.at").as_str().unwrap().to_owned();
    page.click("[data-key='change'] summary");
    page.type_text("form[action='/do/plan-checkpoint'] input[name='name']", "here");
    page.press("Enter");
    page.wait_for(&format!("+document.querySelector('#main').dataset.at > {log}"), DEADLINE);
    waits_for(&page, ".said");
    assert_eq!(path(&page), PLAN);
    assert_eq!(count(&page, "[data-plan='iso-week-dates-7k2m']"), 1);
    assert_eq!(page.faults(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn permissions_are_allowed_and_refused_and_the_title_counts_them() {
    let scene = Scene::new();
    let crew = crew(&scene).await;
    let ann = joined(&crew, "ann").await;
    for n in 1..=3 {
        let asked = ask(Wanted::Permission, &format!("May I do {n}?"), None);
        crew.ask(&ann, asked).await.unwrap();
    }
    let served = Served::on(scene);
    let page = served.open();
    assert_eq!(page.eval("document.title"), "(3) crewlog");
    assert_eq!(page.eval("document.querySelector('h1').textContent"), "3 things wait for you");
    for (n, button, left) in [(1, "allow", "(2) crewlog"), (2, "deny", "(1) crewlog")] {
        page.click(&format!("[data-need='a{n}'] button[value='{button}']"));
        waits_until_gone(&page, &format!("[data-need='a{n}']"));
        page.wait_for(&format!("document.title === '{left}'"), DEADLINE);
    }
    let asks = crew.asks().await.unwrap();
    let granted = [1, 2].map(|n| asks.answer(n).and_then(|(_, answer)| answer.is_granted));
    assert_eq!(granted, [Some(true), Some(false)]);
    // The page learns of an answer from elsewhere.
    served.scene.run(&["answer", "a3", "allow"]).expect(0);
    page.wait_for(
        "document.title === 'crewlog' && document.querySelector('h1').textContent === 'Nothing waits for you'",
        DEADLINE,
    );
    assert_eq!(page.faults(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn choices_pauses_and_leases_are_settled_by_their_forms() {
    let scene = Scene::new();
    let crew = crew(&scene).await;
    let ann = joined(&crew, "ann").await;
    let colours = ["red", "deep blue"].map(str::to_owned).to_vec();
    crew.ask(&ann, Ask { choices: colours, ..ask(Wanted::Answer, "Which colour?", None) }).await.unwrap();
    lease(&crew, &ann, "src/main.rs", None).await;
    scene.run(&["task", "add", "One", "--new"]).expect(0);
    scene.run(&["pause", "backlog", "--reason", "it rains"]).expect(0);
    let served = Served::on(scene);
    let page = served.open();
    for (address, item, fills, button) in [
        ("/", "[data-need='a1']", "", "[value='deep blue']"),
        ("/plans/backlog", "[data-kind='paused']", "", ""),
        ("/files", "[data-lease]", "[name='reason']", ""),
    ] {
        page.goto(&served.url(address));
        if !fills.is_empty() {
            page.type_text(&format!("{item} {fills}"), "it is needed");
        }
        page.click(&format!("{item} button{button}"));
        waits_for(&page, ".said");
        waits_until_gone(&page, item);
        assert_eq!(path(&page), address);
    }
    assert_eq!(crew.asks().await.unwrap().answer(1).map(|(_, answer)| answer.text.clone()), Some("deep blue".into()));
    assert_ne!(served.scene.show("backlog")["status"], "Paused");
    assert_eq!(page.faults(), []);
}

#[test]
fn a_panel_opens_with_its_head_in_view_and_gives_the_focus_back() {
    let served = Served::demo();
    let page = served.open();
    for (width, height, device) in [(1440, 900, Device::Desktop), (390, 844, Device::Phone)] {
        page.resize(width, height, device);
        page.goto(&served.url(&format!("{PLAN}/tasks")));
        for task in ["T17", "T01"] {
            page.click(&format!("[data-task='{task}'] a"));
            let head = "document.querySelector('#inspector-title')";
            page.wait_for(
                &format!("{head} && {head}.textContent.startsWith('{task}') && document.activeElement === {head}"),
                DEADLINE,
            );
            let seen = format!(
                "(() => {{ const box = {head}.getBoundingClientRect(), x = box.left + 4, y = box.top + 8;
                   return {head}.contains(document.elementFromPoint(x, y)) && box.bottom <= innerHeight; }})()"
            );
            assert_eq!(page.eval(&seen), Value::Bool(true), "{width} {task}");
            page.click("[data-close]");
            page.wait_for(&format!("document.activeElement.closest('[data-task=\"{task}\"]')"), DEADLINE);
        }
    }
    assert_eq!(page.faults(), []);
}

#[test]
fn the_bar_of_time_is_a_line_until_it_is_opened() {
    let served = Served::demo();
    let page = served.open();
    let height = "document.querySelector('#time').offsetHeight";
    assert!(page.eval(height).as_i64().unwrap() < 36, "{}", page.eval(height));
    assert_eq!(page.eval("document.querySelector('[data-slider]').checkVisibility()"), Value::Bool(false));
    page.eval("document.querySelector('#time summary').focus()");
    page.press("Enter");
    page.wait_for("document.querySelector('[data-slider]').checkVisibility()", DEADLINE);
    page.goto(&served.url("/?at=700"));
    assert_eq!(page.eval("document.querySelector('[data-slider]').checkVisibility()"), Value::Bool(true));
    assert_eq!(page.faults(), []);
}

/// An address, and what its page says with which status.
const NOWHERE: [(&str, u16, &str, &str); 6] = [
    ("/plans/iso-week", 404, "There is no plan iso-week", "iso-week-dates-7k2m"),
    ("/plans/backlog?task=T99", 404, "backlog has no task T99", "Open backlog"),
    ("/plans/backlog/nothing", 404, "There is nothing at this address", "Home"),
    ("/nothing", 404, "There is nothing at this address", "Home"),
    ("/api/plans/nothing", 404, "No plan has \"nothing\" in its id", "The newest are"),
    ("/do/answer", 405, "This address has other methods", "Home"),
];

#[test]
fn refusals_and_unknown_addresses_have_the_frame_of_every_page() {
    let served = Served::demo();
    let page = served.open();
    let says = |title: &str, also: &str, context: &str| {
        assert_eq!(page.eval("document.querySelector('h1').textContent"), title, "{context}");
        let text = page.eval("document.body.innerText").as_str().unwrap().to_owned();
        assert!(text.contains(also) && !text.contains('{'), "{context}: {text}");
        assert_eq!((count(&page, "header nav a"), count(&page, "h1")), (5, 1), "{context}");
        assert_eq!((page.overlaps(), page.contrast(), page.axe()), (vec![], vec![], vec![]), "{context}");
    };
    for (address, status, title, also) in NOWHERE {
        page.goto(&served.url(address));
        assert_eq!(page.eval("performance.getEntriesByType('navigation')[0].responseStatus"), status, "{address}");
        says(title, also, address);
    }
    page.faults();
    // The typed text stays.
    page.goto(&served.url(PLAN));
    page.click("[data-key='change'] summary");
    page.eval("document.querySelector('form[action=\"/do/task-add\"] [name=plan]').value = 'gone'");
    page.type_text("form[action='/do/task-add'] input[name='text']", "Write the guide");
    page.press("Enter");
    waits_for(&page, ".framed");
    assert!(page.eval("document.body.innerText").as_str().unwrap().contains("nothing was changed"));
    assert_eq!(page.eval("document.querySelector('.framed [name=text]').value"), "Write the guide");
    says("No plan has \"gone\" in its id", "Back", "a refused command");
    page.click(".framed a.btn");
    waits_for(&page, "[data-plan='iso-week-dates-7k2m']");
}

#[test]
fn a_browser_that_was_not_let_in_is_told_how_and_sees_nothing_else() {
    let served = Served::demo();
    served.open();
    for address in [served.url("/"), served.person.clone(), served.url("/plans/backlog")] {
        let page = Browser::start().open(&address, &[]);
        let text = page.eval("document.body.innerText").as_str().unwrap().to_owned();
        assert!(
            text.contains("crewlog serve") && !text.contains("almanac") && !text.contains('{'),
            "{address}: {text}"
        );
        assert_eq!((count(&page, "#top .brand"), count(&page, "nav a"), count(&page, "h1")), (1, 0, 1), "{address}");
    }
}

#[test]
fn a_failed_plan_says_where_and_why_and_is_retried_there() {
    let scene = Scene::with_repository();
    scene.write(
        "plan.md",
        "# Check\n1. Run `true`\n2. Run `echo first; echo 'error: the disk is full' >&2; exit 3`\n3. Run `true`\n",
    );
    scene.run(&["run", "plan.md", "--yes", "-q"]).expect(100);
    let served = Served::on(scene);
    let page = served.open();
    page.click("[data-listed] a");
    waits_for(&page, "[data-plan-status='failed']");
    let why = page.eval("document.querySelector('#plan .why').textContent").as_str().unwrap().to_owned();
    assert!(why.starts_with("It failed at 2 Run") && why.ends_with("exit code 3."), "{why}");
    assert_eq!(page.eval("document.querySelector('#plan .e').textContent"), "error: the disk is full");
    page.click("#plan form[action='/do/retry'] button");
    page.wait_for("document.querySelector('[data-plan-status]').dataset.planStatus !== 'failed'", DEADLINE);
    assert_eq!(page.faults(), []);
}

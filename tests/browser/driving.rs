//! Tests of the driver itself, on small pages.

use std::time::Duration;

use serde_json::json;

use super::devtools::{COMMAND_DEADLINE, Devtools, program};
use super::faults::Fault;
use super::page::{Browser, DEADLINE, Device, Page, Preference};
use super::site::{Site, document};

fn open(body: &str) -> Page {
    Browser::start().open(&Site::page(body).url("/"), &[])
}

#[test]
fn a_page_is_clicked_typed_into_and_waited_for() {
    let page = open(
        "<label>Name <input id=name></label> <button id=greet>Greet</button> <p id=said></p><script>
        greet.onclick = () => setTimeout(() => { said.textContent = `Hello ${name_()}` }, 100);
        function name_() { return document.getElementById('name').value }</script>",
    );
    page.type_text("#name", "Zoë (42) ■");
    page.click("#greet");
    let said = page.wait_for("said.textContent", DEADLINE);
    assert_eq!(said, "Hello Zoë (42) ■");
    assert_eq!(page.eval("Promise.resolve([1, null])"), json!([1, null]));
    assert_eq!(page.faults(), []);
}

#[test]
fn keys_reach_the_page_with_their_modifiers() {
    let page = open(
        "<a href='#a'>a</a> <a href='#b'>b</a><script>
        const seen = []; onkeydown = event => seen.push([event.key, event.code, event.ctrlKey, event.shiftKey]);</script>",
    );
    for key in ["?", "Control+k", "ArrowDown", "Escape", "+", "Tab", "Tab", "Shift+Tab", "Enter"] {
        page.press(key);
    }
    assert_eq!(page.eval("document.activeElement.textContent + location.hash"), "a#a");
    let seen = page.eval("seen");
    assert_eq!(seen.as_array().unwrap().len(), 9);
    assert_eq!(seen[1], json!(["k", "KeyK", true, false]));
    assert_eq!(seen[2], json!(["ArrowDown", "ArrowDown", false, false]));
    assert_eq!(seen[7], json!(["Tab", "Tab", false, true]));
}

#[test]
fn a_wait_outlasts_the_page_that_it_began_on() {
    let links = document("<a id=next href='/next'>next</a>");
    let next = document("<script>setTimeout(() => { document.title = 'There' }, 100)</script>");
    let site = Site::of(vec![("/", "", links), ("/next", "", next)]);
    let page = Browser::start().open(&site.url("/"), &[]);
    page.click("#next");
    page.wait_for("document.title === 'There'", DEADLINE);
    page.goto(&site.url("/"));
    assert_eq!(page.eval("document.title"), "A page");
}

#[test]
fn a_condition_that_is_not_met_fails_with_evidence() {
    let site = Site::page("<script>console.warn('nothing', 1, {})</script><p>");
    let failed = std::thread::Builder::new().name("unmet".to_owned()).spawn(move || {
        Browser::start().open(&site.url("/"), &[]).wait_for("document.body.missing.part", Duration::from_millis(200));
    });
    let says = *failed.unwrap().join().unwrap_err().downcast::<String>().unwrap();
    assert!(says.starts_with("document.body.missing.part: not within 200ms: TypeError"), "{says}");
    let shown = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("unmet.png");
    assert!(std::fs::read(&shown).unwrap().starts_with(b"\x89PNG"));
    std::fs::remove_file(shown).unwrap();
}

#[test]
fn each_page_has_its_own_storage_and_cookies() {
    let site = Site::page("<p>");
    let browser = Browser::start();
    let one = browser.open(&site.url("/"), &[("token", "a")]);
    let other = browser.open(&site.url("/"), &[("token", "b")]);
    one.eval("localStorage.setItem('seen', 1)");
    assert_eq!(one.eval("document.cookie"), "token=a");
    assert_eq!(other.eval("[document.cookie, localStorage.length]"), json!(["token=b", 0]));
}

#[test]
fn sizes_and_preferences_are_seen_by_media_queries() {
    let page = open("<p>");
    page.resize(375, 667, Device::Phone);
    let shown = tempfile::NamedTempFile::new().unwrap();
    page.screenshot(shown.path());
    let size = std::fs::read(shown.path()).unwrap()[16..24].to_vec();
    assert_eq!(size, [0, 0, 1, 119, 0, 0, 2, 155], "a PNG of 375 by 667");
    page.prefer(&[Preference::Dark, Preference::ReducedMotion]);
    let seen = "[innerWidth, innerHeight, navigator.maxTouchPoints > 0,
        ...['(prefers-color-scheme: dark)', '(prefers-reduced-motion)'].map(query => matchMedia(query).matches)]";
    assert_eq!(page.eval(seen), json!([375, 667, true, true, true]));
    page.resize(1600, 900, Device::Desktop);
    page.prefer(&[]);
    assert_eq!(page.eval(seen), json!([1600, 900, false, false, false]));
}

#[test]
fn an_offline_page_loses_requests_and_recovers() {
    let page = open("<script>const heard = []; ononline = onoffline = event => heard.push(event.type)</script>");
    let fetched = "fetch('/').then(answer => answer.status, () => 'lost')";
    page.offline(true);
    assert_eq!(page.eval(fetched), "lost");
    assert!(matches!(page.next_fault(), Fault::Request { why, .. } if why == "net::ERR_INTERNET_DISCONNECTED"));
    page.offline(false);
    page.wait_for("heard.join() === 'offline,online' && navigator.onLine", DEADLINE);
    assert_eq!(page.eval(fetched), 200);
    assert_eq!(page.faults(), []);
}

#[test]
fn everything_that_goes_wrong_is_collected() {
    let page = open("<p>");
    page.eval("console.error('broken', 7)");
    assert_eq!(page.next_fault(), Fault::Console("broken 7".to_owned()));
    page.eval("setTimeout(() => { throw new Error('thrown') })");
    assert!(matches!(page.next_fault(), Fault::Exception(says) if says.starts_with("Error: thrown")));
    page.eval("Promise.reject('refused'), 0");
    assert!(matches!(page.next_fault(), Fault::Exception(says) if says.contains("refused")));
    page.eval("fetch('/missing'), 0");
    assert!(
        matches!(page.next_fault(), Fault::Request { url, why } if url.ends_with("/missing") && why == "status 404")
    );
    assert_eq!(page.faults(), []);
}

#[test]
fn violations_of_the_content_security_policy_are_collected() {
    let page = document("<p style='color: red'>A</p><script>1</script><script src='http://127.0.0.1:1/a.js'></script>");
    let site = Site::of(vec![("/", "Content-Security-Policy: default-src 'self'; img-src data:\r\n", page)]);
    let page = Browser::start().open(&site.url("/"), &[]);
    let mut blocked: Vec<_> = (0..3).map(|_| page.next_fault()).collect();
    blocked.sort_by_key(|fault| format!("{fault:?}"));
    let fault = |directive: &str, url: &str| Fault::Blocked { directive: directive.to_owned(), url: url.to_owned() };
    let script = fault("script-src-elem", "http://127.0.0.1:1/a.js");
    assert_eq!(blocked, [fault("script-src-elem", ""), script, fault("style-src-attr", "")]);
    assert_eq!(page.eval("document.title"), "A page");
    assert_eq!(page.faults(), []);
}

#[test]
fn nothing_but_loopback_is_reached() {
    let page = open("<p>");
    for url in ["http://example.com/", "http://192.0.2.1/", "http://[2001:db8::1]/"] {
        assert_eq!(page.eval(&format!("fetch('{url}').then(() => 'reached', () => 'lost')")), "lost");
        let fault = page.next_fault();
        let Fault::Request { url: lost, why } = &fault else { panic!("{fault:?}") };
        assert!(
            lost == url && (why.contains("NAME_NOT_RESOLVED") || why.contains("INTERNET_DISCONNECTED")),
            "{fault:?}"
        );
    }
}

#[test]
fn a_covered_or_moving_element_is_clicked_when_it_can_be() {
    let page = open(
        "<style>#veil { position: fixed; inset: 0; background: white } #late { position: absolute; transition: left 200ms }
        </style><button id=late style='left: 0; top: 2000px'>Late</button><div id=veil></div><script>
        late.onclick = () => { document.title = 'clicked' };
        setTimeout(() => { veil.remove(); late.style.left = '400px' }, 200)</script>",
    );
    page.click("#late");
    assert_eq!(page.eval("document.title"), "clicked");
}

#[test]
fn a_browser_that_ends_is_a_clear_error() {
    let missing = Devtools::launch("/nowhere/chromium".as_ref()).err().unwrap().to_string();
    assert!(missing.starts_with("the browser ended (exit status: 127)") && missing.contains("not found"), "{missing}");
    let devtools = Devtools::launch(&program().unwrap()).unwrap();
    // It may end before it answers.
    let _ = devtools.call(None, "Browser.close", &json!({}), COMMAND_DEADLINE);
    let mut says = String::new();
    while says.is_empty() {
        let answer = devtools.call(None, "Browser.getVersion", &json!({}), COMMAND_DEADLINE);
        says = answer.err().map(|broken| broken.to_string()).unwrap_or_default();
    }
    assert!(says.starts_with("the browser ended (exit status: 0)"), "{says}");
}

#[test]
fn symbols_and_right_to_left_letters_have_glyphs() {
    let page = open("<p>");
    // A letter without a glyph is drawn as the same box as an unassigned one.
    let drawn = page.eval(
        "[...'\u{378}■▲◆●⚑✓…→אب'].map(letter => {
            const canvas = document.createElement('canvas'), context = canvas.getContext('2d');
            context.font = '40px sans-serif';
            context.fillText(letter, 10, 60);
            return canvas.toDataURL();
        })",
    );
    let (missing, letters) = drawn.as_array().unwrap().split_first().unwrap();
    assert!(letters.iter().all(|letter| letter != missing), "fonts are missing: run tests/browser/install.sh");
}

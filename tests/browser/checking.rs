//! Tests of the page checks: each fault on a page that has it, and none on a sound page.

use serde_json::json;

use super::checks::Finding;
use super::page::{Browser, Device, Page};
use super::site::{Site, document};

/// A page that is 400 px wide.
fn open() -> Page {
    let page = Browser::start().open(&Site::page("").url("/"), &[]);
    page.resize(400, 600, Device::Desktop);
    page
}

/// Replaces the content of the page by this markup.
fn show(page: &Page, markup: &str) {
    page.eval(&format!("document.querySelector('main').innerHTML = {}", json!(markup)));
}

/// The check, the text and the explanation of each finding.
fn brief(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(|Finding { check, text, says, .. }| format!("{check}: {text}: {says}")).collect()
}

const LONG: &str = "The quick brown fox jumps over the lazy dog, and the dog does not care at all";

#[test]
fn text_that_is_cut_or_outside_is_found() {
    let page = open();
    for (markup, expected) in [
        ("<p id=a style='width: 90px; overflow: hidden; white-space: nowrap'>{LONG}", "cut: {START}: cut by #a"),
        ("<p id=a style='height: 30px; overflow: hidden; width: 90px'>{LONG}", "cut: {START}: cut by #a"),
        ("<div id=a style='height: 9px; overflow: clip'><p>Short", "cut: Short: cut by #a"),
        (
            "<p id=a style='width: 90px; overflow: hidden; white-space: nowrap; text-overflow: ellipsis'>{LONG}",
            "cut: {START}: shortened without a title",
        ),
        ("<svg id=a width=80 height=40><text y=20>{LONG}</text></svg>", "cut: {START}: cut by #a"),
        ("<div id=a style='overflow: auto'><p style='margin-left: -30px'>Short", "cut: Short: cut by #a"),
        ("<p style='margin-left: -60px'>Short", "outside: Short: outside of the page: x from -51 to"),
        (
            "<p style='position: fixed; top: 590px; margin: 0'>Short",
            "outside: Short: outside of the page: y from 593 to",
        ),
    ] {
        let start = &LONG[..60];
        show(&page, &markup.replace("{LONG}", LONG));
        let (found, expected) = (brief(&page.overlaps()), expected.replace("{START}", start.trim()));
        assert!(found.len() == 1 && found[0].starts_with(&expected), "{markup}: {found:?}");
    }
}

#[test]
fn text_that_sticks_out_of_its_box_is_found() {
    let page = open();
    for (markup, expected) in [
        ("<p id=a style='width: 50px; border: 1px solid; white-space: nowrap'>A long label", "sticks out of #a"),
        ("<p id=a style='height: 20px; width: 90px; background: #eee'>{LONG}", "sticks out of #a"),
        (
            "<svg width=200 height=40><g><rect id=a width=70 height=40 fill=none stroke=red /><text x=5 y=20>A long label",
            "sticks out of #a",
        ),
    ] {
        show(&page, &markup.replace("{LONG}", LONG));
        let found = page.overlaps();
        assert!(found.len() == 1 && (&*found[0].check, &*found[0].says) == ("spill", expected), "{markup}: {found:?}");
    }
}

#[test]
fn text_over_other_text_is_found() {
    let page = open();
    for (markup, expected) in [
        ("<p>One</p><p id=b style='margin-top: -30px'>Other", "overlap: One: overlaps \"Other\" of #b"),
        (
            "<p style='position: relative'><i id=b style='position: absolute; left: 0'>Other</i>One",
            "overlap: Other: overlaps \"One\" of",
        ),
        (
            "<svg width=200 height=40><text y=20>One</text><text id=b x=10 y=22>Other</text></svg>",
            "overlap: One: overlaps \"Other\" of #b",
        ),
        (
            "<svg width=200 height=200><text y=90 x=60>One text</text><text id=b transform='rotate(45 50 50)' x=50 y=80>Other text</text></svg>",
            "overlap: ",
        ),
        // A layer without a background hides nothing.
        (
            "<p>One</p><p id=b style='position: relative; z-index: 1; top: -30px'>Other",
            "overlap: One: overlaps \"Other\" of #b",
        ),
        (
            "<div style='display: grid'><p style='grid-area: 1 / 1'>One</p><p id=b style='grid-area: 1 / 1'>Other",
            "overlap: One: overlaps \"Other\" of #b",
        ),
    ] {
        show(&page, markup);
        let found = brief(&page.overlaps());
        assert!(found.len() == 1 && found[0].starts_with(expected), "{markup}: {found:?}");
    }
}

#[test]
fn a_page_that_scrolls_sideways_is_found() {
    let page = open();
    show(&page, "<p>Short</p><div><table id=wide style='width: 500px'><tr><td>A</table></div>");
    let found = page.overlaps();
    assert_eq!(brief(&found), ["sideways: A: the page is 508 px wide in a window of 400"]);
    assert!(found[0].path.starts_with("#wide"), "{found:?}");
    let site = Site::of(vec![("/", "", document("<p>Short").replace("name=viewport", ""))]);
    let page = Browser::start().open(&site.url("/"), &[]);
    page.resize(375, 667, Device::Phone);
    let found = brief(&page.overlaps());
    assert!(found.len() == 1 && found[0].contains("px on a screen of 375: is there a <meta"), "{found:?}");
}

#[test]
fn text_in_order_is_not_found() {
    let page = open();
    let shortened = "width: 90px; overflow: hidden; white-space: nowrap; text-overflow: ellipsis";
    for markup in [
        format!(
            "<p>{LONG} <b>{LONG}</b> x<sup>2</sup> <a href='#a'>{LONG}</a></p><p style='line-height: 1'>{LONG}</p>"
        ),
        format!("<p title='{LONG}' style='{shortened}'>{LONG}</p>"),
        format!("<p style='overflow: auto; height: 40px; width: 90px'>{LONG}</p><p>Below</p>"),
        format!("<div style='overflow-x: auto'><table><tr><td style='min-width: 900px'>{LONG}<td>End</table></div>"),
        format!(
            "<div style='overflow: auto; height: 60px; display: flex; flex-direction: column-reverse'><p>{LONG}</p></div>"
        ),
        format!(
            "<p style='border: 1px solid; width: 90px'>Label <span style='position: absolute; background: white'>{LONG}</p>"
        ),
        format!("<div style='background: #eee'><div style='overflow: auto; height: 40px'><p>{LONG}</p></div></div>"),
        "<svg width=200 height=40><rect width=70 height=40 fill=none stroke=red /><text x=5 y=20>Label</text></svg>"
            .to_owned(),
        // For screen readers, or until it has the focus.
        "<span style='position: absolute; width: 1px; height: 1px; overflow: hidden'>Hidden</span>".to_owned(),
        "<a href='#a' style='position: absolute; top: -40px'>Skip</a>".to_owned(),
        "<details><summary>More</summary><p>Closed</details><p hidden>Hidden".to_owned(),
        // Layers with a background.
        format!("<p>{LONG}</p><p style='position: sticky; top: 0; margin-top: -40px; background: white'>{LONG}</p>"),
        format!("<p>{LONG}</p><ul style='position: absolute; z-index: 1; top: 80px; background: white'><li>Menu</ul>"),
        format!("<p>{LONG}</p><dialog id=d><p>Dialog</p></dialog><p>{LONG}</p>"),
        // Side by side, though their boxes around the axes meet.
        "<svg width=300 height=200><text transform='rotate(45 20 20)' x=20 y=20>Turned by 45</text>
            <text transform='rotate(45 50 20)' x=50 y=20>Turned by 45</text></svg>"
            .to_owned(),
        "<div dir=rtl style='overflow: auto; width: 90px; white-space: nowrap'>שלום עולם שלום עולם שלום</div>"
            .to_owned(),
    ] {
        show(&page, &markup);
        page.eval("document.querySelector('#d')?.showModal()");
        assert_eq!(page.overlaps(), [], "{markup}");
    }
}

#[test]
fn faint_text_is_found() {
    let page = open();
    for (markup, expected) in [
        ("<p style='color: #777'>Faint", "contrast: Faint: 4.48 : 1, #777777 on #ffffff"),
        ("<p style='background: #036'>Faint", "contrast: Faint: 1.67 : 1, #000000 on #003366"),
        ("<p style='opacity: 0.5'>Faint", "contrast: Faint: 3.98 : 1, #808080 on #ffffff"),
        (
            "<div style='opacity: 0.5; background: black; color: white'>Faint",
            "contrast: Faint: 3.98 : 1, #ffffff on #808080",
        ),
        (
            "<p style='color: color-mix(in oklch, white, black 30%)'>Faint",
            "contrast: Faint: 2.68 : 1, #9e9e9e on #ffffff",
        ),
        (
            "<p style='background: linear-gradient(90deg, white, #333)'>Faint",
            "contrast: Faint: 1.66 : 1, #000000 on #333333",
        ),
        (
            "<input aria-label=a placeholder=Faint class=a><style>.a::placeholder { color: #777 }</style>",
            "contrast: Faint: 4.48 : 1, #777777 on #ffffff",
        ),
        (
            "<style>q::before { content: 'Faint'; color: #999 }</style><q></q>",
            "contrast: Faint: 2.85 : 1, #999999 on #ffffff",
        ),
        (
            "<div style='height: 900px'></div><p style='color: #999'>Faint",
            "contrast: Faint: 2.85 : 1, #999999 on #ffffff",
        ),
        (
            "<svg width=90 height=30><rect width=90 height=30 fill=#666 /><text y=20 pointer-events=none>Faint</text></svg>",
            "contrast: Faint: 3.66 : 1",
        ),
        (
            "<svg width=90 height=30><text y=20 fill=#999>Faint</text></svg>",
            "contrast: Faint: 2.85 : 1, #999999 on #ffffff",
        ),
        (
            "<svg width=90 height=30><rect x=30 width=60 height=30 fill=#333 /><text y=20>Fa<tspan>int</tspan></text></svg>",
            "contrast: int: 1.66 : 1",
        ),
        (
            "<div style='position: relative'><div style='position: absolute; inset: 0; background: #333'></div><p style='position: relative'>Faint",
            "contrast: Faint: 1.66 : 1, #000000 on #333333",
        ),
    ] {
        show(&page, markup);
        let found = brief(&page.contrast());
        assert!(found.len() == 1 && found[0].starts_with(expected), "{markup}: {found:?}");
    }
    assert_eq!(page.eval("scrollY"), 0);
}

#[test]
fn clear_text_is_not_found() {
    let page = open();
    for markup in [
        "<p style='color: #767676'>Clear",
        "<p style='background: #036; color: white'>Clear <a href='#a' style='color: inherit'>link</a>",
        "<div style='background: black'><p style='background: #fffe'>Clear",
        "<button disabled>Disabled</button>",
        "<div style='background: black'><svg width=90 height=30><rect width=90 height=30 fill=white /><text y=20>Clear</text></svg>",
        "<div style='overflow: auto; height: 40px; background: black; color: white'><p>Clear</p><p style='margin-top: 90px'>Clear",
        "<span style='position: absolute; clip-path: inset(50%); color: white'>Hidden</span>",
        "<ul style='background: #222; color-scheme: dark; color: CanvasText'><li>Clear<li><input aria-label=a value=Clear></ul>",
    ] {
        show(&page, markup);
        assert_eq!(page.contrast(), [], "{markup}");
    }
    // The canvas of a dark page is dark, though no element has a background.
    page.eval("document.documentElement.style.colorScheme = 'dark'");
    show(&page, "<p>Clear");
    assert_eq!(page.contrast(), []);
    show(&page, "<p style='color: #444'>Faint");
    assert_eq!(page.contrast().len(), 1);
}

#[test]
fn serious_violations_of_accessibility_rules_are_found() {
    let page = open();
    show(&page, "<img src='data:,'><button></button><input><p style='color: #aaa'>Faint</p>");
    let mut rules: Vec<_> = page.axe().into_iter().map(|finding| finding.check).collect();
    rules.sort();
    assert_eq!(rules, ["button-name", "color-contrast", "image-alt", "label"]);
    show(&page, "<button>Send</button><label>Name <input></label>");
    assert_eq!(page.axe(), []);
}

#[test]
fn checks_cause_no_faults_under_a_strict_policy() {
    let policy = "Content-Security-Policy: default-src 'none'; require-trusted-types-for 'script'\r\n";
    let site = Site::of(vec![("/", policy, document("<p>A text").replace("<link rel=icon href='data:,'>", ""))]);
    let page = Browser::start().open(&site.url("/"), &[]);
    assert_eq!((page.axe(), page.overlaps(), page.contrast()), (vec![], vec![], vec![]));
    assert_eq!(page.faults(), []);
}

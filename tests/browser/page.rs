//! A page in its own browser context: the actions of a person, and the faults that occur.
//!
//! Every step waits for its condition with a deadline, and panics if it fails. A panicking test prints the messages of
//! the console and the path of a screenshot.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::devtools::{Broken, COMMAND_DEADLINE, Devtools};
use super::faults::{Fault, Faults};
use super::keys;

/// Far more than any step takes, so only a fault reaches it.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// The one browser of this process.
pub struct Browser(&'static Devtools);

impl Browser {
    /// Starts it, unless another test has.
    #[track_caller]
    pub fn start() -> Self {
        Self(Devtools::start().unwrap_or_else(|broken| panic!("{broken}")))
    }

    /// Opens a page that shares nothing with any other page, with these cookies, and waits until it has loaded.
    #[track_caller]
    pub fn open(&self, url: &str, cookies: &[(&str, &str)]) -> Page {
        let page = Page::blank(self.0).unwrap_or_else(|broken| panic!("{broken}"));
        for (name, value) in cookies {
            page.call("Network.setCookie", &json!({ "url": url, "name": name, "value": value }));
        }
        page.goto(url);
        page
    }
}

/// A kind of screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    Desktop,
    /// With touch, and with the layout that `<meta name=viewport>` asks for.
    Phone,
}

/// A preference of a person, seen by the media queries of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preference {
    Dark,
    ReducedMotion,
}

/// An open page. It is closed, and all its storage deleted, when it is dropped.
pub struct Page {
    devtools: &'static Devtools,
    context: String,
    session: String,
    events: Receiver<Value>,
    faults: RefCell<Faults>,
}

impl Page {
    fn blank(devtools: &'static Devtools) -> Result<Self, Broken> {
        let browser = |method: &str, params: Value| devtools.call(None, method, &params, COMMAND_DEADLINE);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let context =
            text(&browser("Target.createBrowserContext", json!({ "disposeOnDetach": true }))?["browserContextId"]);
        let target = json!({ "url": "about:blank", "browserContextId": context, "width": 1280, "height": 800 });
        let target = browser("Target.createTarget", target)?["targetId"].clone();
        let attached = browser("Target.attachToTarget", json!({ "targetId": target, "flatten": true }))?;
        let session = text(&attached["sessionId"]);
        let events = devtools.events(&session);
        let page = Self { devtools, context, session, events, faults: RefCell::default() };
        for domain in ["Page", "Runtime", "Network", "Log", "Audits"] {
            page.call(&format!("{domain}.enable"), &json!({}));
        }
        page.call("Page.setLifecycleEventsEnabled", &json!({ "enabled": true }));
        page.call("Emulation.setFocusEmulationEnabled", &json!({ "enabled": true }));
        page.resize(1280, 800, Device::Desktop);
        Ok(page)
    }

    /// Loads a page, and waits until it has loaded with everything that it includes.
    #[track_caller]
    pub fn goto(&self, url: &str) {
        // It waits for the server, and for a connection: six pages that keep theirs would block the seventh.
        let answer = self.devtools.call(Some(&self.session), "Page.navigate", &json!({ "url": url }), DEADLINE);
        let answer = answer.unwrap_or_else(|broken| panic!("{url}: {broken}"));
        if let Some(says) = answer["errorText"].as_str() {
            panic!("{url} does not load: {says}");
        }
        // Another fragment of the same page loads nothing.
        if let Some(loader) = answer["loaderId"].as_str() {
            let loaded = self.after_events(DEADLINE, |faults| faults.has_loaded(loader).then_some(()));
            loaded.unwrap_or_else(|| panic!("{url} has not loaded after {DEADLINE:?}"));
        }
    }

    /// The value of a JavaScript expression, which may be a promise. It must be JSON.
    #[track_caller]
    pub fn eval(&self, js: &str) -> Value {
        self.evaluated(js, DEADLINE).unwrap_or_else(|broken| panic!("{broken}"))
    }

    /// Waits until a JavaScript expression is truthy, and returns its value. It is evaluated at each frame; an expression that
    /// throws, or a page that is replaced meanwhile, counts as false.
    #[track_caller]
    pub fn wait_for(&self, condition: &str, deadline: Duration) -> Value {
        self.met(condition, deadline).unwrap_or_else(|why| panic!("{condition}: {why}"))
    }

    /// Clicks the middle of an element, once it is visible, at rest and not covered.
    #[track_caller]
    pub fn click(&self, selector: &str) {
        let condition = format!("({})({})", include_str!("clickable.js"), json!(selector));
        let at = self.met(&condition, DEADLINE).unwrap_or_else(|why| panic!("{selector} cannot be clicked: {why}"));
        for (kind, button) in [("mouseMoved", "none"), ("mousePressed", "left"), ("mouseReleased", "left")] {
            let event = json!({ "type": kind, "x": at["x"], "y": at["y"], "button": button, "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", &event);
        }
    }

    /// Clicks an element and types a text into it, key by key.
    #[track_caller]
    pub fn type_text(&self, selector: &str, text: &str) {
        self.click(selector);
        for char in text.chars() {
            if char.is_ascii() {
                self.press(&char.to_string());
            } else {
                self.call("Input.insertText", &json!({ "text": char.to_string() }));
            }
        }
    }

    /// Presses a key, named as in `KeyboardEvent.key`, with modifiers before it: `Enter`, `a`, `?`, `Shift+Tab`, `Control+k`.
    #[track_caller]
    pub fn press(&self, key: &str) {
        let stroke = keys::stroke(key).unwrap_or_else(|| panic!("no key is named {key:?}"));
        self.call("Input.dispatchKeyEvent", &stroke.down);
        self.call("Input.dispatchKeyEvent", &stroke.up);
    }

    /// Gives the page another size, in CSS pixels.
    #[track_caller]
    pub fn resize(&self, width: u32, height: u32, device: Device) {
        let is_phone = device == Device::Phone;
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone });
        self.call("Emulation.setDeviceMetricsOverride", &size);
        self.call("Emulation.setTouchEmulationEnabled", &json!({ "enabled": is_phone }));
    }

    /// Sets the preferences of the person, and resets those that are not listed.
    #[track_caller]
    pub fn prefer(&self, preferences: &[Preference]) {
        let value = |preference, set, unset| if preferences.contains(&preference) { set } else { unset };
        let features = json!([
            { "name": "prefers-color-scheme", "value": value(Preference::Dark, "dark", "light") },
            { "name": "prefers-reduced-motion", "value": value(Preference::ReducedMotion, "reduce", "no-preference") },
        ]);
        self.call("Emulation.setEmulatedMedia", &json!({ "features": features }));
    }

    /// Grants what a person is asked for: to show notifications.
    #[track_caller]
    pub fn allow_notifications(&self) {
        let granted = json!({ "permissions": ["notifications"], "browserContextId": self.context });
        let granted = self.devtools.call(None, "Browser.grantPermissions", &granted, COMMAND_DEADLINE);
        granted.unwrap_or_else(|broken| panic!("{broken}"));
    }

    /// Cuts the page off from the network, or connects it again. Only new requests fail:
    /// to end an open stream, end the server.
    #[track_caller]
    pub fn offline(&self, is_offline: bool) {
        let speed = json!({ "offline": is_offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1 });
        self.call("Network.emulateNetworkConditions", &speed);
    }

    /// Blocks the scripts of pages, as in a browser without JavaScript. Expressions can still be evaluated.
    #[track_caller]
    pub fn without_scripts(&self) {
        self.call("Network.setBlockedURLs", &json!({ "urls": ["*.js", "*.js?*"] }));
    }

    /// Writes what the page shows to a PNG file.
    #[track_caller]
    pub fn screenshot(&self, path: impl AsRef<Path>) {
        self.captured(path.as_ref()).unwrap_or_else(|broken| panic!("{broken}"));
    }

    /// All faults since the last call: errors on the console, uncaught exceptions, failed requests and violations of
    /// the content security policy.
    #[track_caller]
    pub fn faults(&self) -> Vec<Fault> {
        // The faults so far are reported once the page has drawn a frame.
        self.eval("new Promise(done => requestAnimationFrame(() => setTimeout(() => done(true))))");
        self.after_events(Duration::ZERO, |_| None::<()>);
        self.faults.borrow_mut().take()
    }

    /// Waits for the next fault, and takes it out of [`Page::faults`].
    #[track_caller]
    pub fn next_fault(&self) -> Fault {
        let next = self.after_events(DEADLINE, Faults::take_first);
        next.unwrap_or_else(|| panic!("nothing went wrong within {DEADLINE:?}"))
    }

    /// The value of a condition, or the reason why it is not met in time.
    fn met(&self, condition: &str, deadline: Duration) -> Result<Value, String> {
        let started = Instant::now();
        loop {
            let left = deadline.saturating_sub(started.elapsed());
            let js = include_str!("wait.js").replace("MILLIS", &left.as_millis().to_string());
            match self.evaluated(&js.replace("CONDITION", condition), left + COMMAND_DEADLINE) {
                Ok(found) if !found["value"].is_null() => return Ok(found["value"].clone()),
                Ok(missed) => {
                    let thrown = missed["thrown"].as_str().map(|thrown| format!(": {thrown}")).unwrap_or_default();
                    return Err(format!("not within {deadline:?}{thrown}"));
                }
                Err(broken) if is_replaced(&broken) && started.elapsed() < deadline => {}
                Err(broken) => return Err(broken.to_string()),
            }
        }
    }

    fn evaluated(&self, js: &str, deadline: Duration) -> Result<Value, Broken> {
        let params = json!({ "expression": js, "awaitPromise": true, "returnByValue": true, "userGesture": true });
        let answer = self.devtools.call(Some(&self.session), "Runtime.evaluate", &params, deadline)?;
        match answer.get("exceptionDetails") {
            None => Ok(answer["result"]["value"].clone()),
            Some(thrown) => {
                let says = thrown["exception"]["description"].as_str().or(thrown["text"].as_str()).unwrap_or_default();
                Err(Broken::Refused { method: js.chars().take(200).collect(), says: says.to_owned() })
            }
        }
    }

    /// Folds events until there is an answer or the deadline has passed; at least those that have arrived.
    #[track_caller]
    fn after_events<T>(&self, deadline: Duration, mut answer: impl FnMut(&mut Faults) -> Option<T>) -> Option<T> {
        let started = Instant::now();
        loop {
            self.events.try_iter().for_each(|event| self.faults.borrow_mut().fold(&event));
            if let Some(answer) = answer(&mut self.faults.borrow_mut()) {
                return Some(answer);
            }
            match self.events.recv_timeout(deadline.saturating_sub(started.elapsed())) {
                Ok(event) => self.faults.borrow_mut().fold(&event),
                Err(RecvTimeoutError::Timeout) => return None,
                Err(RecvTimeoutError::Disconnected) => panic!("{}", self.devtools.end()),
            }
        }
    }

    #[track_caller]
    fn call(&self, method: &str, params: &Value) -> Value {
        let answer = self.devtools.call(Some(&self.session), method, params, COMMAND_DEADLINE);
        answer.unwrap_or_else(|broken| panic!("{broken}"))
    }

    fn captured(&self, path: &Path) -> Result<(), Broken> {
        let params = json!({ "format": "png" });
        let answer = self.devtools.call(Some(&self.session), "Page.captureScreenshot", &params, COMMAND_DEADLINE)?;
        let png =
            BASE64_STANDARD.decode(answer["data"].as_str().unwrap_or_default()).expect("the protocol says base64");
        std::fs::write(path, png).expect("a file can be written");
        Ok(())
    }

    /// For the report of a failed test: a screenshot, and the messages of the page.
    fn evidence(&self) -> String {
        self.events.try_iter().for_each(|event| self.faults.borrow_mut().fold(&event));
        let test = std::thread::current().name().unwrap_or("page").replace("::", "-");
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}.png"));
        let shown = match self.captured(&path) {
            Ok(()) => path.display().to_string(),
            Err(broken) => broken.to_string(),
        };
        format!("screenshot: {shown}\nconsole and network:\n{}", self.faults.borrow().messages().join("\n"))
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.evidence());
        }
        self.devtools.forget(&self.session);
        let context = json!({ "browserContextId": self.context });
        // A browser that has ended has closed the page.
        let _ = self.devtools.call(None, "Target.disposeBrowserContext", &context, COMMAND_DEADLINE);
    }
}

/// True if the page has been replaced by another.
fn is_replaced(broken: &Broken) -> bool {
    let Broken::Refused { says, .. } = broken else { return false };
    ["navigated or closed", "context was destroyed", "Cannot find context", "Promise was collected"]
        .iter()
        .any(|part| says.contains(part))
}

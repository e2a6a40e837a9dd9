//! The faults of a page, folded from the events of its session.

use std::collections::HashMap;

use serde_json::Value;

/// A fault, which a sound page does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// An error written to the console, by the page or by the browser about it.
    Console(String),
    /// An uncaught exception, or a promise that nobody handled.
    Exception(String),
    /// A request without an answer, or with a status of 400 or more.
    Request { url: String, why: String },
    /// A violation of the content security policy.
    Blocked { directive: String, url: String },
}

/// The faults of a page not yet taken, and all its messages.
#[derive(Default)]
pub struct Faults {
    found: Vec<Fault>,
    messages: Vec<String>,
    requests: HashMap<String, String>,
    loaded: Vec<String>,
}

impl Faults {
    /// Handles an event of the DevTools protocol.
    pub fn fold(&mut self, event: &Value) {
        let params = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Page.lifecycleEvent" if params["name"] == "load" => self.loaded.push(text(&params["loaderId"])),
            "Page.javascriptDialogOpening" => self.messages.push(format!("dialog: {}", text(&params["message"]))),
            "Runtime.consoleAPICalled" => {
                let words = params["args"].as_array().into_iter().flatten().map(printed);
                self.say(&params["type"], words.collect::<Vec<_>>().join(" "));
            }
            "Runtime.exceptionThrown" => {
                let thrown = &params["exceptionDetails"];
                let description = thrown["exception"]["description"].as_str().map(str::to_owned);
                self.find(Fault::Exception(description.unwrap_or_else(|| printed(&thrown["exception"]))));
            }
            // The events of the network and the policy have more detail.
            "Log.entryAdded" if !["network", "security"].contains(&text(&params["entry"]["source"]).as_str()) => {
                self.say(&params["entry"]["level"], text(&params["entry"]["text"]));
            }
            "Network.requestWillBeSent" => {
                self.requests.insert(text(&params["requestId"]), text(&params["request"]["url"]));
            }
            "Network.responseReceived" => {
                if let Some(status @ 400..) = params["response"]["status"].as_u64() {
                    let url = text(&params["response"]["url"]);
                    self.find(Fault::Request { url, why: format!("status {status}") });
                }
            }
            "Network.loadingFailed" => self.fold_failure(params),
            "Audits.issueAdded" => {
                let policy = &params["issue"]["details"]["contentSecurityPolicyIssueDetails"];
                if policy.is_object() {
                    let (directive, url) = (text(&policy["violatedDirective"]), text(&policy["blockedURL"]));
                    self.find(Fault::Blocked { directive, url });
                }
            }
            _irrelevant => {}
        }
    }

    fn fold_failure(&mut self, params: &Value) {
        let url = self.requests.remove(&text(&params["requestId"])).unwrap_or_default();
        let (why, blocked) = (text(&params["errorText"]), text(&params["blockedReason"]));
        // Leaving a page cancels its requests; the policy itself reports the requests that it blocks.
        if params["canceled"] == true || blocked == "csp" {
            self.messages.push(format!("{url}: {why} {blocked}"));
        } else {
            self.find(Fault::Request { url, why });
        }
    }

    fn say(&mut self, level: &Value, words: String) {
        if level == "error" || level == "assert" {
            self.find(Fault::Console(words));
        } else {
            self.messages.push(format!("{}: {words}", text(level)));
        }
    }

    fn find(&mut self, fault: Fault) {
        self.messages.push(format!("{fault:?}"));
        self.found.push(fault);
    }

    /// True if the document of this loader has loaded, with everything that it includes.
    pub fn has_loaded(&self, loader: &str) -> bool {
        self.loaded.iter().any(|loaded| loaded == loader)
    }

    /// All faults since the last call.
    pub fn take(&mut self) -> Vec<Fault> {
        std::mem::take(&mut self.found)
    }

    /// The first of them.
    pub fn take_first(&mut self) -> Option<Fault> {
        (!self.found.is_empty()).then(|| self.found.remove(0))
    }

    /// All messages and faults, in order.
    pub fn messages(&self) -> &[String] {
        &self.messages
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// A value of the page as the console prints it.
fn printed(value: &Value) -> String {
    match (&value["value"], value["description"].as_str()) {
        (Value::String(text), _) => text.clone(),
        (Value::Null, Some(description)) => description.to_owned(),
        (value, _) => value.to_string(),
    }
}

//! Checks of any page, at its current size and with its current preferences: accessibility, text that overlaps or is
//! cut, and contrast.

use serde::Deserialize;
use serde_json::Value;

use super::page::Page;

/// A fault of a page found by a check.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Finding {
    /// `cut`, `outside`, `spill`, `overlap`, `sideways` or `contrast`, or the rule of axe-core.
    pub check: String,
    /// A CSS path of the element.
    pub path: String,
    /// The text, or for axe-core the markup, shortened.
    pub text: String,
    /// The explanation.
    pub says: String,
}

impl Page {
    /// The violations of the rules of axe-core whose impact is serious or critical.
    #[track_caller]
    pub fn axe(&self) -> Vec<Finding> {
        if self.eval("typeof axe") == "undefined" {
            let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("browser");
            let path = path.join("node_modules/axe-core/axe.min.js");
            let axe = std::fs::read_to_string(&path);
            let axe = axe.unwrap_or_else(|error| panic!("{}: {error}: run tests/browser/install.sh", path.display()));
            self.eval(&format!("{axe}; 0"));
        }
        self.findings(&[include_str!("text.js"), include_str!("axe.js")])
    }

    /// Texts that are cut, outside the page, larger than their box or drawn over another text, also in an SVG; and
    /// elements that make the page scroll sideways.
    ///
    /// A text may be shortened with an ellipsis or `line-clamp` if it has a title. A layer with a background may cover
    /// texts if it is fixed, sticky, modal, a popover, or positioned with a `z-index`.
    #[track_caller]
    pub fn overlaps(&self) -> Vec<Finding> {
        self.findings(&[include_str!("text.js"), include_str!("overlaps.js")])
    }

    /// The texts with a contrast below 4.5 : 1, also in an SVG, a control or generated content. Disabled controls and
    /// texts over an image are skipped.
    #[track_caller]
    pub fn contrast(&self) -> Vec<Finding> {
        self.findings(&[include_str!("text.js"), include_str!("contrast.js")])
    }

    #[track_caller]
    fn findings(&self, parts: &[&str]) -> Vec<Finding> {
        let found: Value = self.eval(&format!("(async () => {{ {} }})()", parts.join("\n")));
        serde_json::from_value(found).expect("the script makes findings")
    }
}

//! Upcasters convert events of older versions when they are read. They never change the log.

use std::borrow::Cow;

use serde_json::Value;

/// One step from an older version of an event to a newer one, of all types or of one.
///
/// The first matching step applies. So put the step for one type before the step that leaves the others unchanged:
///
/// ```
/// use crewlog_mq::Upcaster;
///
/// const STEPS: &[Upcaster] = &[
///     Upcaster::step("1.0", "1.1").of("Paid").by(|mut data| {
///         let euros = data["euros"].as_u64().ok_or("euros is no number")?;
///         data["cents"] = (euros * 100).into();
///         Ok(data)
///     }),
///     Upcaster::step("1.0", "1.1"),
///     Upcaster::step("1.1", "2.0").of("Ordered").renamed("Placed"),
///     Upcaster::step("1.1", "2.0"),
/// ];
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Upcaster {
    from: &'static str,
    to: &'static str,
    event_type: Option<&'static str>,
    new_type: Option<&'static str>,
    change: Option<Change>,
}

/// Converts the data, or gives the reason why it cannot.
type Change = fn(Value) -> Result<Value, String>;

impl Upcaster {
    /// From one version to another, for events of every type, leaving them unchanged.
    #[must_use]
    pub const fn step(from: &'static str, to: &'static str) -> Self {
        Self { from, to, event_type: None, new_type: None, change: None }
    }

    /// Restricts the step to events of this type, named as in the older version.
    #[must_use]
    pub const fn of(self, event_type: &'static str) -> Self {
        Self { event_type: Some(event_type), ..self }
    }

    /// The name of the type in the newer version.
    #[must_use]
    pub const fn renamed(self, new_type: &'static str) -> Self {
        Self { new_type: Some(new_type), ..self }
    }

    /// The change to the data.
    #[must_use]
    pub const fn by(self, change: fn(Value) -> Result<Value, String>) -> Self {
        Self { change: Some(change), ..self }
    }

    fn takes(&self, event_type: &str, version: &str) -> bool {
        self.from == version && self.event_type.is_none_or(|wanted| wanted == event_type)
    }
}

/// The type and the data of an event in version `to`.
pub(crate) fn upcast<'a>(
    upcasters: &[Upcaster],
    to: &str,
    mut event_type: &'a str,
    event_version: &'a str,
    data: &'a str,
) -> Result<(&'a str, Cow<'a, str>), serde_json::Error> {
    let (mut version, mut changed) = (event_version, None);
    // Each step applies at most once; more would be a cycle.
    for _ in upcasters {
        let Some(step) = upcasters.iter().find(|step| step.takes(event_type, version)) else { break };
        if let Some(change) = step.change {
            let value = changed.map_or_else(|| serde_json::from_str(data), Ok)?;
            changed = Some(change(value).map_err(|reason| refused(version, step.to, &reason))?);
        }
        event_type = step.new_type.unwrap_or(event_type);
        version = step.to;
        if version == to {
            let newer = changed.map(|value| serde_json::to_string(&value)).transpose()?;
            return Ok((event_type, newer.map_or(Cow::Borrowed(data), Cow::Owned)));
        }
    }
    Err(unknown(event_version, version, to))
}

fn refused(from: &str, to: &str, reason: &str) -> serde_json::Error {
    serde::de::Error::custom(format!("the step from version {from} to {to} refuses it: {reason}"))
}

fn unknown(version: &str, reached: &str, known: &str) -> serde_json::Error {
    let message = if reached == version {
        format!("version {version} is not known, only {known}")
    } else {
        format!("version {version} leads to {reached}, from where no step leads to {known}")
    };
    serde::de::Error::custom(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn doubled(mut data: Value) -> Result<Value, String> {
        let n = data["n"].as_u64().ok_or("n is no number")?;
        data["n"] = (n * 2).into();
        Ok(data)
    }

    const STEPS: &[Upcaster] = &[
        Upcaster::step("1.0", "1.1").of("Counted").by(doubled),
        Upcaster::step("1.0", "1.1"),
        Upcaster::step("1.1", "2.0").of("Counted").renamed("Summed").by(doubled),
        Upcaster::step("1.1", "2.0"),
        Upcaster::step("a", "b"),
        Upcaster::step("b", "a"),
        Upcaster::step("0.9", "0.9.1"),
    ];

    #[test]
    fn upcast_steps_run_in_sequence_and_the_first_match_applies() {
        let check = |event_type: &str, version: &str, data: &str, expected: Result<(&str, &str), &str>| {
            let read = upcast(STEPS, "2.0", event_type, version, data);
            let read = read.map_err(|error| error.to_string());
            match (&read, expected) {
                (Ok((new_type, data)), Ok(expected)) => assert_eq!((*new_type, &**data), expected),
                (Err(error), Err(message)) => assert!(error.contains(message), "{error}"),
                (read, expected) => panic!("{read:?} and not {expected:?}"),
            }
        };
        check("Counted", "1.0", r#"{"n":3}"#, Ok(("Summed", r#"{"n":12}"#)));
        check("Counted", "1.1", r#"{"n":3}"#, Ok(("Summed", r#"{"n":6}"#)));
        check("Closed", "1.0", "{ }", Ok(("Closed", "{ }")));
        check("Counted", "1.0", r#"{"n":"x"}"#, Err("the step from version 1.0 to 1.1 refuses it: n is no number"));
        check("Counted", "1.0", "{", Err("EOF"));
        check("Counted", "3.0", "{}", Err("version 3.0 is not known, only 2.0"));
        check("Counted", "0.9", "{}", Err("version 0.9 leads to 0.9.1, from where no step leads to 2.0"));
        check("Counted", "a", "{}", Err("no step leads to 2.0"));
    }
}

//! Typed events: an enum for each stream, one variant for each thing that can happen.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::append::NewEvent;
use crate::error::{Error, Result};
use crate::recorded::{Causes, Metadata, Recorded};
use crate::upcast::{Upcaster, upcast};
use crate::variant::{self, Variant};

/// An event of a stream: an enum with plain serde derives.
///
/// In the log the variant's name is the event type and its fields alone are `data`, so
/// `Paid { cents: 250 }` is stored as type `Paid` with data `{"cents":250}`.
///
/// ```
/// use crewlog_mq::{Event, Upcaster};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize)]
/// enum Order { Placed { item: String }, Paid { cents: u64 } }
///
/// impl Event for Order {
///     const EVENT_VERSION: &'static str = "2.0";
///
///     // Only for a stream that has events of older versions.
///     fn upcasters() -> &'static [Upcaster] {
///         const STEPS: &[Upcaster] = &[
///             Upcaster::step("1.0", "2.0").of("Ordered").renamed("Placed"),
///             Upcaster::step("1.0", "2.0"),
///         ];
///         STEPS
///     }
/// }
///
/// assert_eq!(Order::Paid { cents: 250 }.event_type(), "Paid");
/// let placed = Order::decode("Ordered", "1.0", r#"{"item":"tea"}"#)?;
/// assert_eq!(placed, Order::Placed { item: "tea".into() });
/// # Ok::<(), serde_json::Error>(())
/// ```
pub trait Event: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Stored with each event, and given back to [`Event::decode`]. It changes with the form of the events.
    const EVENT_VERSION: &'static str = "1.0";

    /// The name of the variant, as serde writes it.
    fn event_type(&self) -> &'static str {
        // What is no variant is refused when it is encoded, under the name that its author knows.
        variant::name_of(self).unwrap_or_else(std::any::type_name::<Self>)
    }

    /// How events of older versions are read: one step after another until they are of [`Event::EVENT_VERSION`].
    fn upcasters() -> &'static [Upcaster] {
        &[]
    }

    /// The variant's fields as JSON.
    ///
    /// # Errors
    /// [`Error::Encode`] when serde fails, or writes another name than [`Event::event_type`].
    fn encode(&self) -> Result<String> {
        let event_type = self.event_type();
        let json = serde_json::to_string(self).map_err(|source| Error::encode(event_type, source))?;
        match variant::fields_of(&json, event_type) {
            Some(fields) => Ok(fields.to_owned()),
            None => {
                let message = "serde does not write it as a variant of this name";
                Err(Error::encode(event_type, serde::de::Error::custom(message)))
            }
        }
    }

    /// An event from what the log has of it, brought up to [`Event::EVENT_VERSION`] by the upcasters.
    ///
    /// # Errors
    /// The reason why it is none of these events: an unknown type or version, or data of another form.
    fn decode(event_type: &str, event_version: &str, data: &str) -> Result<Self, serde_json::Error> {
        if event_version == Self::EVENT_VERSION {
            return Self::deserialize(Variant { name: event_type, data });
        }
        let (event_type, data) = upcast(Self::upcasters(), Self::EVENT_VERSION, event_type, event_version, data)?;
        Self::deserialize(Variant { name: event_type, data: &data })
    }
}

impl NewEvent {
    /// A typed event with a new id and no tags.
    ///
    /// # Errors
    /// [`Error::Encode`] when the event cannot be written as JSON.
    pub fn of<T: Event>(event: &T, metadata: &Metadata) -> Result<Self> {
        Self::from_json(event.event_type(), T::EVENT_VERSION, event.encode()?, metadata)
    }
}

impl Recorded {
    /// The typed event.
    ///
    /// # Errors
    /// [`Error::Decode`] with its position when it is not one of `T`'s.
    pub fn decode<T: Event>(&self) -> Result<T> {
        T::decode(&self.event_type, &self.event_version, &self.data).map_err(|source| self.undecodable(source))
    }

    /// The metadata.
    ///
    /// # Errors
    /// [`Error::Decode`] with its position when it is not in the form of [`Metadata`].
    pub fn metadata(&self) -> Result<Metadata> {
        serde_json::from_str(&self.metadata).map_err(|source| self.undecodable(source))
    }

    /// The ids of its metadata by which it is found; none when that is of another form.
    pub(crate) fn causes(&self) -> Causes {
        self.metadata().map(|metadata| Causes::of(&metadata)).unwrap_or_default()
    }

    fn undecodable(&self, source: serde_json::Error) -> Error {
        Error::Decode {
            position: self.position,
            event_type: self.event_type.clone(),
            event_version: self.event_version.clone(),
            source: std::sync::Arc::new(source),
        }
    }
}

/// A typed event with its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope<T> {
    /// What happened.
    pub event: T,
    /// Why.
    pub metadata: Metadata,
    /// The stored record.
    pub recorded: Recorded,
}

impl<T: Event> Envelope<T> {
    /// Decodes a record.
    ///
    /// # Errors
    /// [`Error::Decode`] with its position.
    pub fn of(recorded: Recorded) -> Result<Self> {
        Ok(Self { event: recorded.decode()?, metadata: recorded.metadata()?, recorded })
    }
}

//! Typed events: an enum for each stream, with a variant for each kind of event.

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
    /// Stored with each event, and passed to [`Event::decode`]. Change it when the form of the events changes.
    const EVENT_VERSION: &'static str = "1.0";

    /// The name of the variant, as serde writes it.
    fn event_type(&self) -> &'static str {
        // Encoding refuses a value that is not a variant, under the type name that its author knows.
        variant::name_of(self).unwrap_or_else(std::any::type_name::<Self>)
    }

    /// Converts events of older versions step by step to [`Event::EVENT_VERSION`].
    fn upcasters() -> &'static [Upcaster] {
        &[]
    }

    /// The variant's fields as JSON.
    ///
    /// # Errors
    /// [`Error::Encode`] if serde fails, or writes another name than [`Event::event_type`].
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

    /// Decodes a stored event, converted to [`Event::EVENT_VERSION`] by the upcasters.
    ///
    /// # Errors
    /// The reason why decoding failed: an unknown type or version, or data in another form.
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
    /// [`Error::Encode`] if the event cannot be written as JSON.
    pub fn of<T: Event>(event: &T, metadata: &Metadata) -> Result<Self> {
        Self::from_json(event.event_type(), T::EVENT_VERSION, event.encode()?, metadata)
    }
}

impl Recorded {
    /// The typed event.
    ///
    /// # Errors
    /// [`Error::Decode`] with its position if it is not one of `T`'s variants.
    pub fn decode<T: Event>(&self) -> Result<T> {
        T::decode(&self.event_type, &self.event_version, &self.data).map_err(|source| self.undecodable(source))
    }

    /// The metadata.
    ///
    /// # Errors
    /// [`Error::Decode`] with its position if it does not parse as [`Metadata`].
    pub fn metadata(&self) -> Result<Metadata> {
        serde_json::from_str(&self.metadata).map_err(|source| self.undecodable(source))
    }

    /// The indexed ids of its metadata; none if the metadata does not parse.
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

/// An item of an [`crate::EventStream`]: an event of one stream, or of several that their records tell apart.
///
/// ```
/// use crewlog_mq::{Error, Event, FromRecorded, Recorded};
/// use serde::{Deserialize, Serialize};
///
/// # #[derive(Serialize, Deserialize)] enum Order { Placed {} }
/// # #[derive(Serialize, Deserialize)] enum Payment { Made {} }
/// # impl Event for Order {}
/// # impl Event for Payment {}
/// enum Sale { Order(Order), Payment(Payment) }
///
/// impl FromRecorded for Sale {
///     fn from_recorded(recorded: &Recorded) -> Result<Self, Error> {
///         Ok(match &*recorded.stream_id {
///             "payments" => Self::Payment(recorded.decode()?),
///             _ => Self::Order(recorded.decode()?),
///         })
///     }
/// }
/// ```
pub trait FromRecorded: Sized + Send + 'static {
    /// Decodes a record.
    ///
    /// # Errors
    /// [`Error::Decode`] with its position.
    fn from_recorded(recorded: &Recorded) -> Result<Self>;
}

impl<T: Event> FromRecorded for T {
    fn from_recorded(recorded: &Recorded) -> Result<Self> {
        recorded.decode()
    }
}

/// A typed event with its record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope<T> {
    /// The typed event.
    pub event: T,
    /// The metadata.
    pub metadata: Metadata,
    /// The stored record.
    pub recorded: Recorded,
}

impl<T: FromRecorded> Envelope<T> {
    /// Decodes a record.
    ///
    /// # Errors
    /// [`Error::Decode`] with its position.
    pub fn of(recorded: Recorded) -> Result<Self> {
        Ok(Self { event: T::from_recorded(&recorded)?, metadata: recorded.metadata()?, recorded })
    }
}

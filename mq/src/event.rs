//! Typed events: an enum for each stream, one variant for each thing that can happen.

use serde::de::{DeserializeOwned, Deserializer, EnumAccess, IntoDeserializer, VariantAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::de::StrRead;

use crate::error::{Error, Result};
use crate::ids::new_event_id;
use crate::query::Causes;
use crate::record::{Metadata, NewEvent, Recorded};

/// An event of a stream: an enum with plain serde derives.
///
/// In the log the variant's name is the event type and its fields alone are `data`, so
/// `Paid { cents: 250 }` is stored as type `Paid` with data `{"cents":250}`.
pub trait Event: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// Stored with each event, and given back to [`Event::decode`].
    const EVENT_VERSION: &'static str;

    /// The name of the variant, as serde writes it.
    fn event_type(&self) -> &'static str;

    /// The variant's fields as JSON.
    ///
    /// # Errors
    /// [`Error::Encode`] when serde fails, or writes another name than [`Event::event_type`].
    fn encode(&self) -> Result<String> {
        let event_type = self.event_type();
        let json = serde_json::to_string(self).map_err(|source| Error::encode(event_type, source))?;
        match fields_of(&json, event_type) {
            Some(fields) => Ok(fields.to_owned()),
            None => {
                let message = "serde does not write it as a variant of this name";
                Err(Error::encode(event_type, serde::de::Error::custom(message)))
            }
        }
    }

    /// An event from what the log has of it. An event that changes its form overrides this to read older versions.
    ///
    /// # Errors
    /// The reason why it is none of these events: an unknown type or version, or data of another form.
    fn decode(event_type: &str, event_version: &str, data: &str) -> Result<Self, serde_json::Error> {
        if event_version != Self::EVENT_VERSION {
            let message = format!("version {event_version} is not known, only {}", Self::EVENT_VERSION);
            return Err(serde::de::Error::custom(message));
        }
        Self::deserialize(Variant { name: event_type, data })
    }
}

/// `fields` of `{"name":fields}`, or `null` of `"name"`.
fn fields_of<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    match json.strip_prefix('"') {
        Some(unit) => unit.strip_suffix('"').filter(|unit| *unit == name).map(|_| "null"),
        None => json.strip_prefix("{\"")?.strip_prefix(name)?.strip_prefix("\":")?.strip_suffix('}'),
    }
}

/// An externally tagged enum whose tag and content come from two places.
struct Variant<'de> {
    name: &'de str,
    data: &'de str,
}

impl<'de> Deserializer<'de> for Variant<'de> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_enum(self)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = serde_json::Error;
    type Variant = Fields<'de>;

    fn variant_seed<S: serde::de::DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), Self::Error> {
        let name = IntoDeserializer::<serde_json::Error>::into_deserializer(self.name);
        Ok((seed.deserialize(name)?, Fields(self.data)))
    }
}

struct Fields<'de>(&'de str);

impl<'de> Fields<'de> {
    /// Reads the whole of the data, so that trailing bytes are an error.
    fn read<T>(
        self,
        read: impl FnOnce(&mut serde_json::Deserializer<StrRead<'de>>) -> Result<T, serde_json::Error>,
    ) -> Result<T, serde_json::Error> {
        let mut json = serde_json::Deserializer::from_str(self.0);
        let value = read(&mut json)?;
        json.end()?;
        Ok(value)
    }
}

impl<'de> VariantAccess<'de> for Fields<'de> {
    type Error = serde_json::Error;

    fn unit_variant(self) -> Result<(), Self::Error> {
        self.read(|json| <()>::deserialize(json))
    }

    fn newtype_variant_seed<S: serde::de::DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Self::Error> {
        self.read(|json| seed.deserialize(json))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Self::Error> {
        self.read(|json| json.deserialize_seq(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.read(|json| json.deserialize_map(visitor))
    }
}

impl NewEvent {
    /// A typed event with a new id and no tags.
    ///
    /// # Errors
    /// [`Error::Encode`] when the event cannot be written as JSON.
    pub fn of<T: Event>(event: &T, metadata: &Metadata) -> Result<Self> {
        Ok(Self {
            event_id: new_event_id(),
            event_type: event.event_type().to_owned(),
            event_version: T::EVENT_VERSION.to_owned(),
            data: event.encode()?,
            metadata: metadata.encode()?,
            tags: Vec::new(),
            causes: Causes::of(metadata),
        })
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
    /// Where it stands in the log.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Sample {
        Fields { text: String, n: Option<u8> },
        Newtype(Vec<u8>),
        Tuple(u8, String),
        Unit,
    }

    impl Event for Sample {
        const EVENT_VERSION: &'static str = "1.0";
        fn event_type(&self) -> &'static str {
            match self {
                Self::Fields { .. } => "Fields",
                Self::Newtype(_) => "Newtype",
                Self::Tuple(..) => "Tuple",
                Self::Unit => "Unit",
            }
        }
    }

    #[test]
    fn every_shape_of_variant_survives_encoding_and_decoding() {
        let check = |event: Sample, data: &str| {
            assert_eq!(event.encode().unwrap(), data);
            assert_eq!(Sample::decode(event.event_type(), "1.0", data).unwrap(), event);
        };
        check(
            Sample::Fields { text: "a \"quoted\" } text\n\u{0}é".into(), n: None },
            "{\"text\":\"a \\\"quoted\\\" } text\\n\\u0000é\",\"n\":null}",
        );
        check(Sample::Newtype(vec![1, 2]), "[1,2]");
        check(Sample::Tuple(7, String::new()), "[7,\"\"]");
        check(Sample::Unit, "null");
    }

    #[test]
    fn an_unknown_type_version_or_form_is_an_error_that_says_so() {
        let check = |event_type: &str, version: &str, data: &str, message: &str| {
            let error = Sample::decode(event_type, version, data).unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        };
        check("Other", "1.0", "null", "unknown variant `Other`");
        check("Unit", "2.0", "null", "version 2.0 is not known");
        check("Tuple", "1.0", "[7]", "invalid length 1");
        check("Unit", "1.0", "null null", "trailing characters");
    }
}

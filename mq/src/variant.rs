//! Splits an enum value into the name of its variant and its fields as JSON, and joins them again.

use serde::de::{Deserializer, EnumAccess, IntoDeserializer, VariantAccess, Visitor};
use serde::ser::{Impossible, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::de::StrRead;

/// The name of the variant, as serde writes it; `None` for a value that serde does not write as a variant.
pub(crate) fn name_of<T: Serialize + ?Sized>(value: &T) -> Option<&'static str> {
    // It always stops, at the latest at the fields.
    value.serialize(Naming).err()?.0
}

/// A serializer that stops at the name.
struct Naming;

/// The signal that it has stopped, with the name that it found.
#[derive(Debug, thiserror::Error)]
#[error("stopped at {0:?}")]
struct Stop(Option<&'static str>);

impl serde::ser::Error for Stop {
    fn custom<T: std::fmt::Display>(_: T) -> Self {
        Self(None)
    }
}

type Never = Impossible<(), Stop>;

/// Methods for values that are not variants.
macro_rules! no_variant {
    ($($method:ident($($value:ty),*) -> $ok:ty,)*) => {
        $(fn $method(self, $(_: $value),*) -> Result<$ok, Stop> { Err(Stop(None)) })*
    };
}

impl Serializer for Naming {
    type Ok = ();
    type Error = Stop;
    type SerializeSeq = Never;
    type SerializeTuple = Never;
    type SerializeTupleStruct = Never;
    type SerializeTupleVariant = Never;
    type SerializeMap = Never;
    type SerializeStruct = Never;
    type SerializeStructVariant = Never;

    no_variant! {
        serialize_bool(bool) -> (), serialize_char(char) -> (), serialize_str(&str) -> (), serialize_bytes(&[u8]) -> (),
        serialize_i8(i8) -> (), serialize_i16(i16) -> (), serialize_i32(i32) -> (), serialize_i64(i64) -> (),
        serialize_u8(u8) -> (), serialize_u16(u16) -> (), serialize_u32(u32) -> (), serialize_u64(u64) -> (),
        serialize_f32(f32) -> (), serialize_f64(f64) -> (), serialize_none() -> (), serialize_unit() -> (),
        serialize_unit_struct(&'static str) -> (), serialize_seq(Option<usize>) -> Never, serialize_tuple(usize) -> Never,
        serialize_tuple_struct(&'static str, usize) -> Never, serialize_map(Option<usize>) -> Never,
        serialize_struct(&'static str, usize) -> Never,
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Result<(), Stop> {
        Err(Stop(None))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, _: &T) -> Result<(), Stop> {
        Err(Stop(None))
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Stop> {
        Err(Stop(Some(variant)))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: &T,
    ) -> Result<(), Stop> {
        Err(Stop(Some(variant)))
    }

    fn serialize_tuple_variant(self, _: &'static str, _: u32, variant: &'static str, _: usize) -> Result<Never, Stop> {
        Err(Stop(Some(variant)))
    }

    fn serialize_struct_variant(self, _: &'static str, _: u32, variant: &'static str, _: usize) -> Result<Never, Stop> {
        Err(Stop(Some(variant)))
    }
}

/// `fields` of `{"name":fields}`, or `null` of `"name"`.
pub(crate) fn fields_of<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    match json.strip_prefix('"') {
        Some(unit) => unit.strip_suffix('"').filter(|unit| *unit == name).map(|_| "null"),
        None => json.strip_prefix("{\"")?.strip_prefix(name)?.strip_prefix("\":")?.strip_suffix('}'),
    }
}

/// An externally tagged enum whose tag and content come from two sources.
pub(crate) struct Variant<'de> {
    pub(crate) name: &'de str,
    pub(crate) data: &'de str,
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

pub(crate) struct Fields<'de>(&'de str);

impl<'de> Fields<'de> {
    /// Reads all of the data, so that trailing bytes are an error.
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

//! Finds every string that a type can have in JSON, by deserialising the type. Later additions to
//! the type are found too.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use serde::de::value::StrDeserializer;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Expected, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

/// The value of every string.
pub const TEXT: &str = "a text";
/// The aliases of fields of events.
const ALIASES: [&str; 1] = ["entity_id"];
/// How often a type is read; each variant of each enum has its turn.
const N_READ: usize = 3_000;

/// The findings.
#[derive(Debug, Default)]
pub struct Found {
    /// The paths of strings.
    pub texts: BTreeSet<String>,
    /// The paths of strings that name a variant.
    pub names: BTreeSet<String>,
    /// The paths of maps whose keys are strings.
    pub maps: BTreeSet<String>,
    /// By path: how often a variant was chosen, and how many there are.
    chosen: BTreeMap<String, (usize, usize)>,
}

/// Reads an enum of events many times, with its fields under `data`. Returns the findings, and all values read.
pub fn trace<T: for<'de> Deserialize<'de>>() -> (Found, Vec<T>) {
    let found = RefCell::default();
    let read = |_| T::deserialize(Tracer { path: "data".into(), is_root: true, found: &found });
    let all = (0..N_READ).map(read).collect::<Result<_, _>>();
    let all = all.unwrap_or_else(|error: Unreadable| panic!("the tracer must learn of this: {error}"));
    let found = found.into_inner();
    for (path, (n_chosen, n_variants)) in &found.chosen {
        assert!(n_chosen >= n_variants, "not all variants of {path} were seen: read more often");
    }
    (found, all)
}

type Unreadable = serde::de::value::Error;

struct Tracer<'a> {
    path: String,
    is_root: bool,
    found: &'a RefCell<Found>,
}

impl<'a> Tracer<'a> {
    fn below(&self, name: impl Display) -> Self {
        Self { path: format!("{}/{name}", self.path), is_root: false, found: self.found }
    }

    fn text(&self) -> &'static str {
        self.found.borrow_mut().texts.insert(self.path.clone());
        TEXT
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident,)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unreadable> { visitor.$visit(1) })*
    };
}

impl<'de> Deserializer<'de> for Tracer<'_> {
    type Error = Unreadable;

    numbers! {
        deserialize_i8 visit_i8, deserialize_i16 visit_i16, deserialize_i32 visit_i32, deserialize_i64 visit_i64,
        deserialize_u8 visit_u8, deserialize_u16 visit_u16, deserialize_u32 visit_u32, deserialize_u64 visit_u64,
    }

    forward_to_deserialize_any! { i128 u128 char bytes byte_buf ignored_any identifier unit unit_struct }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unreadable> {
        let expected = (&visitor as &dyn Expected).to_string();
        Err(serde::de::Error::custom(format!("{} is {expected}", self.path)))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unreadable> {
        visitor.visit_bool(true)
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unreadable> {
        visitor.visit_f32(0.5)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unreadable> {
        visitor.visit_f64(0.5)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unreadable> {
        visitor.visit_str(self.text())
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unreadable> {
        visitor.visit_str(self.text())
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unreadable> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Unreadable> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unreadable> {
        visitor.visit_seq(Elements { of: self, at: 0, length: 1 })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Unreadable> {
        visitor.visit_seq(Elements { of: self, at: 0, length })
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Unreadable> {
        visitor.visit_seq(Elements { of: self, at: 0, length })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unreadable> {
        match (&visitor as &dyn Expected).to_string().as_str() {
            // Its kind is an enum whose tag and content are among its own fields.
            "struct Attachment" => {
                self.found.borrow_mut().names.insert(self.below("kind").path);
                visitor.visit_map(Fields { of: self, names: &["kind", "ref", "label"], at: 0 })
            }
            _a_map => {
                self.found.borrow_mut().maps.insert(self.path.clone());
                visitor.visit_map(Entries { of: self, is_read: false })
            }
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unreadable> {
        visitor.visit_map(Fields { of: self, names, at: 0 })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unreadable> {
        let turn = {
            let mut found = self.found.borrow_mut();
            let (n_chosen, n_variants) = found.chosen.entry(self.path.clone()).or_default();
            (*n_chosen, *n_variants) = (*n_chosen + 1, variants.len());
            *n_chosen - 1
        };
        visitor.visit_enum(Variant { of: self, name: variants[turn % variants.len()] })
    }
}

struct Elements<'a> {
    of: Tracer<'a>,
    at: usize,
    length: usize,
}

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = Unreadable;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Unreadable> {
        if self.at == self.length {
            return Ok(None);
        }
        self.at += 1;
        seed.deserialize(self.of.below(self.at - 1)).map(Some)
    }
}

struct Fields<'a> {
    of: Tracer<'a>,
    names: &'static [&'static str],
    at: usize,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Unreadable;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Unreadable> {
        // Aliases are second names of fields.
        while self.names.get(self.at).is_some_and(|name| ALIASES.contains(name)) {
            self.at += 1;
        }
        let Some(name) = self.names.get(self.at) else { return Ok(None) };
        seed.deserialize(StrDeserializer::<Unreadable>::new(name)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Unreadable> {
        let name = self.names[self.at];
        self.at += 1;
        match self.names {
            ["kind", "ref", "label"] if name == "kind" => {
                seed.deserialize(StrDeserializer::<Unreadable>::new("FileRef"))
            }
            // Content that is buffered first reveals no type.
            ["kind", "ref", "label"] if name == "ref" => {
                let text = self.of.below(name).text();
                seed.deserialize(StrDeserializer::<Unreadable>::new(text))
            }
            _others => seed.deserialize(self.of.below(name)),
        }
    }
}

struct Entries<'a> {
    of: Tracer<'a>,
    is_read: bool,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Unreadable;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Unreadable> {
        if std::mem::replace(&mut self.is_read, true) {
            return Ok(None);
        }
        // This value is discarded, so it is not among the texts.
        let of_key = RefCell::default();
        seed.deserialize(Tracer { path: String::new(), is_root: false, found: &of_key }).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Unreadable> {
        seed.deserialize(self.of.below("key"))
    }
}

struct Variant<'a> {
    of: Tracer<'a>,
    name: &'static str,
}

impl<'de, 'a> EnumAccess<'de> for Variant<'a> {
    type Error = Unreadable;
    type Variant = Content<'a>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Content<'a>), Unreadable> {
        let name = seed.deserialize(IntoDeserializer::<Unreadable>::into_deserializer(self.name))?;
        // An event's own name is its type, and only its fields are its data.
        let below = if self.of.is_root {
            Tracer { path: self.of.path.clone(), is_root: false, found: self.of.found }
        } else {
            self.of.below(self.name)
        };
        Ok((name, Content { of: self.of, below }))
    }
}

struct Content<'a> {
    of: Tracer<'a>,
    below: Tracer<'a>,
}

impl<'de> VariantAccess<'de> for Content<'_> {
    type Error = Unreadable;

    fn unit_variant(self) -> Result<(), Unreadable> {
        if !self.of.is_root {
            self.of.found.borrow_mut().names.insert(self.of.path.clone());
        }
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Unreadable> {
        seed.deserialize(self.below)
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Unreadable> {
        self.below.deserialize_tuple(length, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unreadable> {
        visitor.visit_map(Fields { of: self.below, names, at: 0 })
    }
}

//! Reading what may have any shape: what is expected is read, anything else is passed over, and nothing is an error.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A `T` where an object stands, and the default of `T` where anything else does.
#[derive(Debug, Default)]
pub(crate) struct Loose<T>(pub(crate) T);

/// The objects of a list, and none where anything else stands. What is no object in it is a default `T`.
#[derive(Debug)]
pub(crate) struct LooseList<T>(pub(crate) Vec<T>);

impl<T> Default for LooseList<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for Loose<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseVisitor(PhantomData)).map(Self)
    }
}

impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for LooseList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseListVisitor(PhantomData)).map(Self)
    }
}

struct LooseVisitor<T>(PhantomData<T>);
struct LooseListVisitor<T>(PhantomData<T>);

/// Everything that is no object and no array becomes the default.
macro_rules! scalars_are_passed_over {
    () => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("any value")
        }
        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
}

impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for LooseVisitor<T> {
    type Value = T;
    scalars_are_passed_over!();

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<T, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(T::default())
    }
}

impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for LooseListVisitor<T> {
    type Value = Vec<T>;
    scalars_are_passed_over!();

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Loose(item)) = seq.next_element()? {
            list.push(item);
        }
        Ok(list)
    }
}

//! The values of parameters and rows, as a PostgreSQL server sends and receives them.

use std::error::Error as StdError;
use std::fmt::Write;

use rusqlite::types::{ToSql, ToSqlOutput, Value, ValueRef};
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{Format, IsNull, Type};
use tokio_postgres::{Column, Error};

pub(crate) fn texts(values: &[&dyn ToSql]) -> rusqlite::Result<Vec<Option<String>>> {
    values.iter().map(|value| text(*value)).collect()
}

/// A parameter as text: the server knows its type. PostgreSQL cannot store NUL.
fn text(value: &dyn ToSql) -> rusqlite::Result<Option<String>> {
    let output = value.to_sql()?;
    let value = match &output {
        ToSqlOutput::Borrowed(value) => *value,
        ToSqlOutput::Owned(value) => ValueRef::from(value),
        _ => return Err(rusqlite::Error::InvalidQuery),
    };
    Ok(match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(format!("{number:?}")),
        ValueRef::Text(_) => Some(value.as_str()?.replace('\0', "\u{2400}")),
        ValueRef::Blob(bytes) => {
            let mut text = String::with_capacity(2 + 2 * bytes.len());
            text.push_str("\\x");
            bytes.iter().for_each(|byte| {
                let _ = write!(text, "{byte:02x}");
            });
            Some(text)
        }
    })
}

/// A parameter in the protocol's text format.
#[derive(Debug)]
pub(crate) struct Parameter<'a>(pub(crate) &'a Option<String>);

impl tokio_postgres::types::ToSql for Parameter<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        let Some(text) = self.0 else { return Ok(IsNull::Yes) };
        out.extend_from_slice(text.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    tokio_postgres::types::to_sql_checked!();
}

/// A value with the type that SQLite would return.
pub(crate) fn value(row: &tokio_postgres::Row, at: usize, column: &Column) -> Result<Value, Error> {
    let integer = |number: Option<i64>| number.map_or(Value::Null, Value::Integer);
    Ok(match *column.type_() {
        Type::BOOL => integer(row.try_get::<_, Option<bool>>(at)?.map(i64::from)),
        Type::INT2 => integer(row.try_get::<_, Option<i16>>(at)?.map(i64::from)),
        Type::INT4 => integer(row.try_get::<_, Option<i32>>(at)?.map(i64::from)),
        Type::INT8 => integer(row.try_get(at)?),
        Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(at)?.map_or(Value::Null, Value::Blob),
        Type::FLOAT8 => row.try_get::<_, Option<f64>>(at)?.map_or(Value::Null, Value::Real),
        _ => row.try_get::<_, Option<String>>(at)?.map_or(Value::Null, Value::Text),
    })
}

//! The values that statements take and that rows contain.

use rusqlite::types::{FromSql, ToSql, Type, Value, ValueRef};
use rusqlite::{Error, Result as SqlResult, RowIndex};

/// A row of a result.
pub(crate) enum Row<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    Postgres(&'a PostgresRow),
}

/// A row that a server has sent.
#[derive(Debug)]
pub(crate) struct PostgresRow {
    pub(crate) names: std::sync::Arc<[String]>,
    pub(crate) values: Vec<Value>,
}

/// A column, by its position or its name.
pub(crate) trait Column: RowIndex + Copy {
    fn position(self, names: &[String]) -> SqlResult<usize>;
}

impl Column for usize {
    fn position(self, names: &[String]) -> SqlResult<usize> {
        if self < names.len() { Ok(self) } else { Err(Error::InvalidColumnIndex(self)) }
    }
}

impl Column for &str {
    fn position(self, names: &[String]) -> SqlResult<usize> {
        names.iter().position(|name| name == self).ok_or_else(|| Error::InvalidColumnName(self.to_owned()))
    }
}

impl Row<'_> {
    pub(crate) fn get<C: Column, T: FromSql>(&self, column: C) -> SqlResult<T> {
        let row = match self {
            Row::Sqlite(row) => return row.get(column),
            Row::Postgres(row) => row,
        };
        let at = column.position(&row.names)?;
        let value = ValueRef::from(&row.values[at]);
        T::column_result(value).map_err(|error| Error::FromSqlConversionFailure(at, value.data_type(), error.into()))
    }

    pub(crate) fn get_ref(&self, at: usize) -> SqlResult<ValueRef<'_>> {
        match self {
            Row::Sqlite(row) => row.get_ref(at),
            Row::Postgres(row) => row.values.get(at).map(ValueRef::from).ok_or(Error::InvalidColumnIndex(at)),
        }
    }
}

/// The error for a text that this program does not understand.
pub(crate) fn meaningless(text: &str) -> Error {
    Error::FromSqlConversionFailure(0, Type::Text, format!("unknown: {text}").into())
}

/// The values of a statement's parameters, in order.
pub(crate) trait Values {
    fn list(&self) -> Vec<&dyn ToSql>;
}

impl Values for [&dyn ToSql; 0] {
    fn list(&self) -> Vec<&dyn ToSql> {
        Vec::new()
    }
}

impl Values for &[&dyn ToSql] {
    fn list(&self) -> Vec<&dyn ToSql> {
        self.to_vec()
    }
}

impl<T: ToSql> Values for Vec<T> {
    fn list(&self) -> Vec<&dyn ToSql> {
        self.iter().map(|value| value as &dyn ToSql).collect()
    }
}

macro_rules! arrays {
    ($($length:literal)+) => {
        $(impl<T: ToSql> Values for [T; $length] {
            fn list(&self) -> Vec<&dyn ToSql> {
                self.iter().map(|value| value as &dyn ToSql).collect()
            }
        })+
    };
}

arrays!(1 2 3 4);

macro_rules! tuples {
    ($($name:ident)+) => {
        impl<$($name: ToSql),+> Values for ($($name,)+) {
            #[expect(non_snake_case, reason = "the names of its types")]
            fn list(&self) -> Vec<&dyn ToSql> {
                let ($($name,)+) = self;
                vec![$($name as &dyn ToSql),+]
            }
        }
    };
}

tuples!(A B);
tuples!(A B C);
tuples!(A B C D);
tuples!(A B C D E);
tuples!(A B C D E F);
tuples!(A B C D E F G);
tuples!(A B C D E F G H);
tuples!(A B C D E F G H I);
tuples!(A B C D E F G H I J);
tuples!(A B C D E F G H I J K);
tuples!(A B C D E F G H I J K L);
tuples!(A B C D E F G H I J K L M);
tuples!(A B C D E F G H I J K L M N);
tuples!(A B C D E F G H I J K L M N O);

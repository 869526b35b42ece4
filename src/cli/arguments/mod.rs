//! Arguments shared by several commands.

pub(crate) mod command_groups;
pub(crate) mod form_options;
pub(crate) mod id_completion;
pub(crate) mod limit_options;
pub(crate) mod linger_option;
pub(crate) mod manner_options;
pub(crate) mod pager_option;
pub(crate) mod positions;
pub(crate) mod several_ids;
pub(crate) mod since;
pub(crate) mod tasks;
pub(crate) mod trailing_args;

use std::num::{IntErrorKind, ParseIntError};
use std::str::FromStr;

/// Parses a number of at least 0.
pub(crate) fn whole_number(text: &str) -> Result<usize, &'static str> {
    text.parse().map_err(|_| "it must be a whole number")
}

/// Parses a number of at least 1.
pub(crate) fn at_least_one<N>(text: &str) -> Result<N, &'static str>
where
    N: FromStr<Err = ParseIntError> + PartialOrd + From<u8>,
{
    match text.parse() {
        Ok(number) if number >= N::from(1) => Ok(number),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => Err("it is too large"),
        Ok(_) | Err(_) => Err("it must be a whole number of at least 1"),
    }
}

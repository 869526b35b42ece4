//! Arguments that several commands have.

pub(crate) mod candidates;
pub(crate) mod claude_args;
pub(crate) mod form;
pub(crate) mod limits;
pub(crate) mod positions;
pub(crate) mod tasks;

use clap::builder::RangedU64ValueParser;

/// How many entries a list may have.
pub(crate) fn at_least_one() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}

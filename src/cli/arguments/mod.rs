//! Arguments shared by several commands.

pub(crate) mod command_groups;
pub(crate) mod form_options;
pub(crate) mod id_completion;
pub(crate) mod limit_options;
pub(crate) mod linger_option;
pub(crate) mod pager_option;
pub(crate) mod positions;
pub(crate) mod several_ids;
pub(crate) mod since;
pub(crate) mod tasks;
pub(crate) mod trailing_args;

use clap::builder::RangedU64ValueParser;

/// Parses the limit of a list, which must be at least 1.
pub(crate) fn at_least_one() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}

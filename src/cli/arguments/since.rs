//! `--since`: the time with which a list begins.

use jiff::Timestamp;

use crate::core::text::shell::shell_word;
use crate::core::text::time::past_time;
use crate::local_zone::local_zone;

/// A time as it was given.
#[derive(Clone, Debug)]
pub(crate) struct Since {
    pub(crate) time: Timestamp,
    given: String,
}

impl Since {
    /// The option again, for a suggested command.
    pub(crate) fn option(&self) -> String {
        format!("--since {}", shell_word(&self.given))
    }
}

pub(crate) fn since(text: &str) -> Result<Since, String> {
    Ok(Since { time: past_time(text, Timestamp::now(), &local_zone())?, given: text.to_owned() })
}

//! Who did something, as far as the system reports it.

use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::core::id::FrameId;

/// Who gave an answer: recorded with it, so that it can be traced later.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Origin {
    /// The user's numeric id.
    pub uid: u32,
    /// The user's name.
    pub(crate) user: Option<String>,
    /// The process.
    pub process: u32,
    /// The terminal that it was connected to; `None`: no terminal.
    pub terminal: Option<String>,
    /// The nearest agent among its ancestor processes, in any state directory.
    pub agent: Option<FrameId>,
    /// The Claude Code session in whose tool call it ran.
    pub claude_session: Option<String>,
    /// Whether its parent process has ended, so that it is unknown who started it: a service, a script that a person left
    /// running, or a process that an agent left behind.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub orphaned: bool,
    /// The file that an answer was read from. The user is then its owner, and the process the one that read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FromFile>,
    /// The MCP client that passed it on, with its version, as it calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The browser from which it was sent to the page; the other fields are then about the process that serves the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<FromPage>,
    /// If the database is on a server: the host, and the user of the database as the server knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<FromHost>,
}

/// The host from which something was recorded on a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FromHost {
    pub name: String,
    pub database_user: String,
}

impl Origin {
    /// Who it was, in a few words, without being escaped.
    pub(crate) fn name(&self) -> String {
        match (&self.page, &self.client) {
            (Some(page), _) => page.in_words(),
            (None, Some(client)) => client.clone(),
            (None, None) => self.user.clone().unwrap_or_else(|| format!("user {}", self.uid)),
        }
    }
}

/// A browser in which the page was used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FromPage {
    /// Its address, as the server saw it.
    pub address: String,
    /// The browser, as it calls itself.
    pub browser: Option<String>,
}

impl FromPage {
    /// For people, without being escaped.
    pub(crate) fn in_words(&self) -> String {
        let browser = self.browser.as_ref().map(|browser| format!(", {browser}")).unwrap_or_default();
        format!("page, {}{browser}", self.address)
    }
}

/// A file with an answer in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FromFile {
    pub path: PathBuf,
    /// When it was last changed. No program can set this time.
    #[serde(alias = "modified")]
    pub changed: Timestamp,
}

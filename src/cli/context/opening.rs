//! Finds the state directory and opens its store.

use std::env;
use std::path::PathBuf;

use jiff::Timestamp;

use crate::app::config::setting::{STATE_DIR as STATE_DIR_SETTING, STORE as STORE_SETTING};
use crate::app::error::{AppError, Refusal};
use crate::claude::invocation::{STATE_DIR, STORE};
use crate::cli::context::Context;
use crate::cli::context::environment::named_state_dir;
use crate::cli::error::CliError;
use crate::store::{Notifications, StateDir, Store};

impl Context {
    pub(crate) fn store(&self) -> Result<Store, CliError> {
        Ok(match self.opened.take() {
            Some(opened) => opened?,
            None => {
                let dir = self.state_dir().map_err(|error| match self.is_server_configured() {
                    true => CliError::from(error).hint("agent-cli config unset store, if the database is not yours"),
                    false => error.into(),
                })?;
                Store::open(&dir)?
            }
        })
    }

    /// Whether only the user's settings name a server.
    fn is_server_configured(&self) -> bool {
        let is_named = self.server.is_some() || env::var_os(STORE).is_some_and(|url| !url.is_empty());
        !is_named && self.place().is_ok() && self.configured(&STORE_SETTING).is_some_and(|store| store.text().is_some())
    }

    /// Runs `look` on an idle store, if possible without opening it. `None` if the store must be opened.
    pub(crate) fn read_snapshot<T, E>(&self, look: impl FnOnce(&Store) -> Result<T, E>) -> Option<T> {
        let dir = self.state_dir().ok()?;
        if Store::is_shared(&dir) {
            // A connection takes longer than what is read. The command may need it again, and its error.
            let opened = self.opened.take().unwrap_or_else(|| Store::open(&dir));
            let seen = opened.as_ref().ok().and_then(|store| look(store).ok());
            self.opened.replace(Some(opened));
            return seen;
        }
        Store::read_snapshot(&dir, |store| Ok(look(store).ok())).flatten()
    }

    /// The state directory. Makes it use the server that the person named, if any.
    pub(crate) fn state_dir(&self) -> Result<PathBuf, AppError> {
        let dir = self.place()?;
        // An agent could set any variable.
        if self.caller.is_none() && !self.is_chosen.get() {
            let variable = || env::var(STORE).ok().filter(|url| !url.is_empty());
            let url = self
                .server
                .clone()
                .or_else(variable)
                .or_else(|| self.configured(&STORE_SETTING)?.text().map(str::to_owned));
            url.map_or(Ok(()), |url| Store::use_server(&dir, &url))?;
            self.is_chosen.set(true);
        }
        Ok(dir)
    }

    /// The state directory, whichever database it uses.
    pub(crate) fn place(&self) -> Result<PathBuf, AppError> {
        let dir = named_state_dir()
            .or_else(|| self.configured(&STATE_DIR_SETTING)?.path())
            .or_else(StateDir::default_path)
            .ok_or_else(|| Refusal::failure("no home directory to keep state in").hint(format!("set {STATE_DIR}")))?;
        std::path::absolute(&dir)
            .map_err(|error| Refusal::failure(format!("{} cannot be used: {error}", dir.display())).into())
    }

    /// Whether a command that only polls has notifications to send.
    pub(super) fn are_notifications_due(&self) -> bool {
        let has_commands = || self.config().is_ok_and(|config| config.is_some_and(|it| !it.commands.of.is_empty()));
        let Ok(dir) = self.state_dir() else { return false };
        if self.caller.is_some() || !has_commands() || StateDir::new(&dir).is_ok_and(|dir| !Store::exists(&dir)) {
            return false;
        }
        let next = |store: &Store| store.outbox().list(Notifications::NextDue);
        let found = self.read_snapshot(next).or_else(|| next(&self.store().ok()?).ok());
        found.unwrap_or_default().iter().any(|next| next.due <= Timestamp::now())
    }
}

//! Moves the records of all chains to a server.

use std::path::Path;

use crate::app::Asker;
use crate::app::asker::PersonsTask;
use crate::app::error::AppError;
use crate::store::{Moved, Store};

pub(crate) fn move_to_server(asker: &Asker, state_dir: &Path, url: &str) -> Result<Moved, AppError> {
    asker.may(PersonsTask::Move)?;
    Ok(Store::move_to_server(state_dir, url)?)
}

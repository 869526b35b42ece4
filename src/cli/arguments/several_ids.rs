//! Runs a command for each of several ids.

use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::print_json;

/// Calls a function for each item, even if it has failed for others. If there are several items, this reports each error,
/// with `json` also as an object, and returns the worst exit status.
pub(crate) fn for_each<T>(
    all: Vec<T>,
    json: bool,
    mut each: impl FnMut(T) -> Result<(), CliError>,
) -> Result<ExitStatus, CliError> {
    let is_single = all.len() == 1;
    let mut worst = ExitStatus::Ok;
    for one in all {
        match each(one) {
            Ok(()) => {}
            Err(error) if is_single => return Err(error),
            Err(error) => {
                if json {
                    print_json(&error.view())?;
                }
                worst = worst.or_worse(error.report());
            }
        }
    }
    Ok(worst)
}

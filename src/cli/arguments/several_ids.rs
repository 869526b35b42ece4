//! Commands that do the same for each of several ids.

use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::print_json;

/// Does something for each of them, whether or not it fails for others. With several ones, each error is reported, with `json`
/// also as an object, and the exit status is the worst.
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

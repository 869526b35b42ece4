//! Removes everything that `init` wrote.

use std::fs;

use crate::app::Asker;
use crate::app::asker::PersonsTask;
use crate::app::error::AppError;
use crate::app::housekeeping::setup::memory_file::MemoryFile;
use crate::app::housekeeping::setup::{Place, Plan, is_sample};
use crate::app::view::outcome::Change;

/// Plans the change.
pub(crate) fn plan(asker: &Asker, place: &Place) -> Result<Plan, AppError> {
    asker.may(PersonsTask::SetUp)?;
    let file = MemoryFile::read(place)?;
    let (change, after) = match file.section()? {
        None => (Change::Unchanged, file.before().to_owned()),
        Some(section) => {
            let after = section.removed();
            // A person created the link, even if `init` created the file.
            let is_own = section.came_with_its_file() && after.is_empty() && file.leads_to.is_none();
            (if is_own { Change::Deleted } else { Change::Removed }, after)
        }
    };
    let mut plan = Plan { file, change, after, defined_in: None, task: None, kept_task: None, hides: None };
    if change == Change::Unchanged {
        return Ok(plan);
    }
    plan.file.refuse_if_read_only()?;
    if let Some(task) = place.task().filter(|task| fs::symlink_metadata(task).is_ok_and(|found| found.is_file())) {
        let is_own = is_sample(&task);
        *(if is_own { &mut plan.task } else { &mut plan.kept_task }) = Some(task);
    }
    Ok(plan)
}

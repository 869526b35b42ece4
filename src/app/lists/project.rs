//! Which chains belong to the asker's project.

use std::path::{Path, PathBuf};

use crate::app::App;
use crate::app::error::AppError;
use crate::app::lookup::{Projects, here};

/// Selects what is in one project, or everything.
#[derive(Debug, Default)]
pub(super) struct Selection {
    projects: Projects,
    /// `None`: all projects.
    only: Option<PathBuf>,
    /// How many entries were not selected.
    pub(super) elsewhere: u64,
}

impl Selection {
    /// `all_projects`: not only the asker's.
    pub(super) fn new(app: &App<'_>, all_projects: bool) -> Result<Self, AppError> {
        let mut projects = Projects::default();
        let only = if all_projects { None } else { Some(here(app, &mut projects)?) };
        Ok(Self { projects, only, elsewhere: 0 })
    }

    /// Whether a chain that was started in this directory is selected.
    pub(super) fn includes(&mut self, cwd: &Path) -> bool {
        self.only.as_ref().is_none_or(|only| self.projects.of(cwd) == *only)
    }

    /// The same for an entry that is counted if it is not.
    pub(super) fn counts(&mut self, cwd: &Path) -> bool {
        let is_included = self.includes(cwd);
        self.elsewhere += u64::from(!is_included);
        is_included
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::testing;
    use crate::store;

    #[test]
    fn what_is_elsewhere_is_counted_and_a_missing_directory_is_an_error() {
        let (temp, store) = store::testing::store();
        let [here, there] = ["here", "there"].map(|name| temp.path().join(name));
        std::fs::create_dir(&here).unwrap();
        let here = here.canonicalize().unwrap();
        let app = App { directory: here.clone(), ..testing::app(&store) };
        let mut selection = Selection::new(&app, false).unwrap();
        assert_eq!([&here, &there].map(|cwd| selection.includes(cwd)), [true, false]);
        assert_eq!(selection.elsewhere, 0);
        assert_eq!([&here, &there, &there].map(|cwd| selection.counts(cwd)), [true, false, false]);
        assert_eq!(selection.elsewhere, 2);
        let mut all = Selection::new(&app, true).unwrap();
        assert_eq!(([&here, &there].map(|cwd| all.counts(cwd)), all.elsewhere), ([true, true], 0));

        let gone = App { directory: there, ..testing::app(&store) };
        assert!(Selection::new(&gone, true).is_ok());
        let error = Selection::new(&gone, false).unwrap_err().to_string();
        assert!(error.starts_with("the current directory cannot be used: "), "{error}");
    }
}

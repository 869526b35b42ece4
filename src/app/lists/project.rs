//! Selects the chains that belong to the asker's project.

use std::path::{Path, PathBuf};

use crate::app::App;
use crate::app::error::AppError;
use crate::app::lookup::{Projects, here};
use crate::store::{Chains, Store, StoreError, Summary};

/// Selects the chains of one project, or of all projects.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    projects: Projects,
    /// `None`: all projects.
    only: Option<PathBuf>,
}

impl Selection {
    /// With `all_projects`, selects all projects instead of the asker's.
    pub(crate) fn new(app: &App<'_>, all_projects: bool) -> Result<Self, AppError> {
        let mut projects = if all_projects { Projects::default() } else { Projects::new(app.store)? };
        let only = if all_projects { None } else { Some(here(app, &mut projects)?) };
        Ok(Self { projects, only })
    }

    /// Whether a chain that was started in this directory is selected.
    pub(crate) fn includes(&mut self, cwd: &Path) -> bool {
        self.only.as_ref().is_none_or(|only| self.projects.of(cwd) == *only)
    }

    /// The selected chains that have ended, but in which a person has continued an agent.
    pub(crate) fn continued(&mut self, store: &Store) -> Result<Vec<Summary>, StoreError> {
        let mut chains = store.chains(Chains::Continued)?.chains;
        chains.retain(|chain| chain.state.is_over() && self.includes(&chain.cwd));
        Ok(chains)
    }

    /// The directories in which chains of the project were started. `None` for all projects.
    pub(crate) fn directories(mut self, store: &Store) -> Result<Option<Vec<PathBuf>>, StoreError> {
        self.only.map(|project| self.projects.directories(store, &project)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::testing;
    use crate::store::testing::new;
    use crate::store::{self, NewFrame};

    #[test]
    fn a_project_has_the_directories_of_its_chains_and_a_missing_directory_is_an_error() {
        let (temp, store) = store::testing::store();
        let [here, there] = ["here", "there"].map(|name| temp.path().join(name));
        std::fs::create_dir(&here).unwrap();
        let here = here.canonicalize().unwrap();
        let app = App { directory: here.clone(), ..testing::app(&store) };
        let mut selection = Selection::new(&app, false).unwrap();
        assert_eq!([&here, &there].map(|cwd| selection.includes(cwd)), [true, false]);
        for cwd in [&here, &here, &there] {
            store.create_root(&NewFrame { cwd: cwd.clone(), ..new("a task") }).unwrap();
        }
        assert_eq!(selection.directories(&store).unwrap(), Some(vec![here.clone()]));
        let mut all = Selection::new(&app, true).unwrap();
        assert_eq!([&here, &there].map(|cwd| all.includes(cwd)), [true, true]);
        assert_eq!(all.directories(&store).unwrap(), None);

        let gone = App { directory: there, ..testing::app(&store) };
        assert!(Selection::new(&gone, true).is_ok());
        let error = Selection::new(&gone, false).unwrap_err().to_string();
        assert!(error.starts_with("the current directory cannot be used: "), "{error}");
    }
}

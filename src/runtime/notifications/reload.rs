//! Notices that the config file has changed, for whoever sends notifications for a long time.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::core::notifications::event_commands::EventCommands;
use crate::runtime::notifications::config_file::{self, BadConfig, ConfigFile};

/// An editor may empty a file before it writes it: what was changed is read when it has stayed the same for so long.
pub(super) const DEBOUNCE: Duration = Duration::from_millis(100);

/// What a file looks like from outside: inode, size, times in nanoseconds. `None`: there is none.
type FileLook = Option<(u64, u64, [i64; 4])>;

/// A config file that is looked at again and again.
#[derive(Debug)]
pub(super) struct Reload {
    path: PathBuf,
    /// As it was when it was read; `None`: it was not.
    read: Option<FileLook>,
    /// As it was a moment ago, if it is changing.
    changing: Option<FileLook>,
}

/// What came of a look.
#[derive(Debug, PartialEq)]
pub(super) enum News {
    Nothing,
    /// It is changing.
    Soon,
    Changed(Result<ConfigFile, BadConfig>),
}

impl Reload {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, read: None, changing: None }
    }

    /// Reads the file if it is not as it was. The first look reads it in any case.
    pub(super) fn look(&mut self) -> News {
        let look = fs::metadata(&self.path).ok().map(|found| {
            let times = [found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec()];
            (found.ino(), found.len(), times)
        });
        if self.read == Some(look) {
            self.changing = None;
            return News::Nothing;
        }
        if self.read.is_some() && self.changing != Some(look) {
            self.changing = Some(look);
            return News::Soon;
        }
        (self.read, self.changing) = (Some(look), None);
        let empty = || ConfigFile { path: self.path.clone(), commands: EventCommands::default(), problems: Vec::new() };
        News::Changed(config_file::read(&self.path).map(|found| found.unwrap_or_else(empty)))
    }

    /// Where a change is seen: the file, and what it is a link to.
    pub(super) fn places(&self) -> Vec<PathBuf> {
        [Some(self.path.clone()), self.path.canonicalize().ok()].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_once_and_again_after_it_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let mut reload = Reload::new(path.clone());
        let commands = |news: News| match news {
            News::Changed(Ok(config)) => config.commands.of.len(),
            other => panic!("{other:?}"),
        };
        assert_eq!(commands(reload.look()), 0, "there is none");
        assert_eq!(reload.look(), News::Nothing);
        fs::write(&path, "").unwrap();
        assert_eq!(reload.look(), News::Soon);
        fs::write(&path, "[on]\ndone = 'tell'\n").unwrap();
        assert_eq!(reload.look(), News::Soon);
        assert_eq!(commands(reload.look()), 1);
        assert_eq!(reload.look(), News::Nothing);
        fs::write(&path, "[on\n").unwrap();
        assert_eq!(reload.look(), News::Soon);
        assert!(matches!(reload.look(), News::Changed(Err(_))));
        assert_eq!(reload.look(), News::Nothing, "it is said once");
        fs::remove_file(&path).unwrap();
        assert_eq!(reload.look(), News::Soon);
        assert_eq!(commands(reload.look()), 0);
    }
}

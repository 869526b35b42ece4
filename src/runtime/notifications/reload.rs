//! Notices changes of the config file, for processes that send notifications for a long time.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::core::notifications::event_commands::EventCommands;
use crate::runtime::notifications::config_file::{BadConfig, ConfigFile};

/// An editor may empty a file before it writes it: a change is read when the file has not changed for this long.
pub(super) const DEBOUNCE: Duration = Duration::from_millis(100);

/// Identifies a version of a file without reading it: inode, size, times in nanoseconds. `None`: it does not exist.
type FileLook = Option<(u64, u64, [i64; 4])>;

/// Reads a config file. `None`: it does not exist.
pub(crate) type ReadConfig = fn(&Path) -> Result<Option<ConfigFile>, BadConfig>;

/// A config file that is checked repeatedly.
#[derive(Debug)]
pub(super) struct Reload {
    path: PathBuf,
    read_config: ReadConfig,
    /// The version that was read last; `None`: none was.
    read: Option<FileLook>,
    /// The version seen at the last check, if it is changing.
    changing: Option<FileLook>,
}

/// The result of a check.
#[derive(Debug, PartialEq)]
pub(super) enum News {
    Nothing,
    /// It is changing.
    Soon,
    Changed(Result<ConfigFile, BadConfig>),
}

impl Reload {
    pub(super) fn new(path: PathBuf, read_config: ReadConfig) -> Self {
        Self { path, read_config, read: None, changing: None }
    }

    /// Reads the file if it has changed. The first check reads it in any case.
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
        News::Changed((self.read_config)(&self.path).map(|found| found.unwrap_or_else(empty)))
    }

    /// Where a change is visible: the file, and the target of a link.
    pub(super) fn places(&self) -> Vec<PathBuf> {
        [Some(self.path.clone()), self.path.canonicalize().ok()].into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::notifications::config_file;

    #[test]
    fn a_file_is_read_once_and_again_after_it_has_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let mut reload = Reload::new(path.clone(), config_file::read);
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

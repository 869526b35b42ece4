//! Records which server has the database of a state directory.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use crate::failpoint::Step;
use crate::store::error::{Result, StoreError};
use crate::store::files::durable::{Durability, replace};
use crate::store::files::state_dir::StateDir;

/// The file that names the server with the database.
const SERVER: &str = "server";

/// The server with the database of a state directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerFile {
    /// Its address, perhaps with a password.
    pub(crate) url: String,
    /// The name of this state directory in the records.
    pub(crate) host: String,
    /// Where the directory was when this was recorded. A copy has it, too.
    pub(crate) identity: DirectoryIdentity,
}

/// Identifies a state directory on all machines. What is unknown is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DirectoryIdentity {
    pub(crate) machine: String,
    /// The number of the directory in its file system, which a copy does not have.
    pub(crate) directory: String,
}

impl DirectoryIdentity {
    /// That of a directory here.
    pub(crate) fn new(dir: &StateDir) -> Self {
        let machine = fs::read_to_string("/etc/machine-id").map(|id| id.trim().to_owned()).unwrap_or_default();
        let directory = fs::metadata(&dir.path).map(|found| found.ino().to_string()).unwrap_or_default();
        Self { machine, directory }
    }

    /// Whether this is known to be another place.
    pub(crate) fn differs(&self, other: &Self) -> bool {
        let differ = |one: &str, other: &str| !one.is_empty() && !other.is_empty() && one != other;
        differ(&self.machine, &other.machine) || differ(&self.directory, &other.directory)
    }
}

impl StateDir {
    /// The file that names the server with the database.
    pub(crate) fn server_file(&self) -> PathBuf {
        self.path.join(SERVER)
    }

    /// The server with the database; `None`: the database is a file of this directory.
    pub(crate) fn server(&self) -> Result<Option<ServerFile>> {
        let path = self.server_file();
        let text = match fs::read_to_string(&path) {
            // The operation that creates the directory reports what is in its place.
            Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) => {
                return Ok(None);
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && self.is_of_another_user() => {
                return Err(StoreError::OfAnotherUser(self.path.clone()));
            }
            read => read.map_err(|error| StoreError::io(&path, error))?,
        };
        let mut lines = text.lines().map(str::to_owned);
        let (Some(url), Some(host)) = (lines.next(), lines.next().filter(|host| !host.is_empty())) else {
            return Err(StoreError::BadStore { why: format!("{} is incomplete", path.display()) });
        };
        let [machine, directory] = [(); 2].map(|()| lines.next().unwrap_or_default());
        Ok(Some(ServerFile { url, host, identity: DirectoryIdentity { machine, directory } }))
    }

    fn is_of_another_user(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|found| found.uid() != rustix::process::geteuid().as_raw())
    }

    /// The file with the identifier of this directory in the records on a server.
    pub(crate) fn host_file(&self) -> PathBuf {
        self.path.join("host")
    }

    /// The identifier of this directory in the records on a server. The first call records the result of `new`.
    pub(crate) fn host(&self, new: impl FnOnce() -> String) -> Result<String> {
        let path = self.host_file();
        let broken = |error| StoreError::io(&path, error);
        match fs::read_to_string(&path) {
            Ok(host) => return Ok(host.trim().to_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(broken(error)),
        }
        self.create()?;
        let host = new();
        let fill = |file: &mut File| file.write_all(format!("{host}\n").as_bytes());
        replace(Step::SetServer, &path, Durability::PowerFailure, fill).map_err(broken)?;
        Ok(host)
    }

    /// A file that changes when another process has written to a database on a server.
    pub(crate) fn notified(&self) -> PathBuf {
        self.path.join(format!("{SERVER}-notified"))
    }

    /// The file that says until when agents may run on this host.
    pub(crate) fn lease_end(&self) -> PathBuf {
        self.path.join("lease")
    }

    /// Makes the directory use the database on a server from now on.
    pub(crate) fn set_server(&self, server: &ServerFile) -> Result<()> {
        self.create()?;
        let path = self.server_file();
        let DirectoryIdentity { machine, directory } = &server.identity;
        let text = format!("{}\n{}\n{machine}\n{directory}\n", server.url, server.host);
        replace(Step::SetServer, &path, Durability::PowerFailure, |file| file.write_all(text.as_bytes()))
            .map_err(|error| StoreError::io(&path, error))
    }
}

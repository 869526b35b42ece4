//! Checks who could replace a trusted file.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::unistd::{Gid, Group, Uid, User};

use crate::core::housekeeping::file_ownership::{Exposed, Owned, PathKind};
use crate::store::error::{Result, StoreError};
use crate::store::files::state_dir::StateDir;

/// The state directory at `named`, if no other user could have written to it: its records decide which commands run.
///
/// # Errors
///
/// [`StoreError::Exposed`], or the errors of [`StateDir::new`].
pub(crate) fn trusted(named: &Path) -> Result<StateDir> {
    let dir = StateDir::new(named)?;
    // A path that cannot be checked cannot be used either, and its user reports why.
    let absolute = std::path::absolute(named).map_err(|error| StoreError::io(named, error))?;
    let on_the_way = exposed(&absolute).ok().flatten();
    let records = || dir.records().into_iter().map(|(path, _)| path).chain([dir.database_log()]);
    let found = on_the_way.or_else(|| records().find_map(|path| exposed_itself(&path).ok().flatten()));
    match found {
        Some(exposed) => Err(StoreError::Exposed { dir: dir.path().to_owned(), exposed }),
        None => Ok(dir),
    }
}

/// The same as [`exposed`] for a path in a directory that is not exposed.
fn exposed_itself(path: &Path) -> io::Result<Option<Exposed>> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    if found.is_symlink() {
        return exposed(path);
    }
    let how = owned(&found, PathKind::Trusted).exposure();
    Ok(how.map(|how| Exposed { place: path.to_owned(), how }))
}

/// The first place on the way to the absolute `path` where other users could replace something. Checks both the path as
/// given and the path that links lead to. Components that do not exist are skipped.
pub(crate) fn exposed(path: &Path) -> io::Result<Option<Exposed>> {
    let named = on_the_way(path)?;
    match (named, fs::canonicalize(path)) {
        (Some(exposed), _) => Ok(Some(exposed)),
        (None, Ok(real)) if real != path => on_the_way(&real),
        (None, _) => Ok(None),
    }
}

fn on_the_way(path: &Path) -> io::Result<Option<Exposed>> {
    let above: Vec<&Path> = path.ancestors().collect();
    for place in above.into_iter().rev() {
        let found = match fs::symlink_metadata(place) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) => return Err(error),
        };
        let kind = match () {
            () if found.is_symlink() => PathKind::Link,
            () if place == path => PathKind::Trusted,
            () => PathKind::Above,
        };
        if let Some(how) = owned(&found, kind).exposure() {
            return Ok(Some(Exposed { place: place.to_owned(), how }));
        }
    }
    Ok(None)
}

fn owned(found: &Metadata, kind: PathKind) -> Owned {
    let is_own = [rustix::process::geteuid().as_raw(), 0].contains(&found.uid()) || is_nobody_here(found.uid());
    Owned {
        kind,
        by_another: (!is_own).then_some(found.uid()),
        mode: found.mode(),
        // The files with users and groups are read only if it matters.
        is_of_private_group: found.mode() & 0o020 != 0 && !kind.is_shared(found.mode()) && is_private(found.gid()),
    }
}

/// Whether a group is private to one user, as many systems set it up: it has the user's name and no other members.
fn is_private(group: u32) -> bool {
    let user = User::from_uid(Uid::effective()).ok().flatten();
    let group = Group::from_gid(Gid::from_raw(group)).ok().flatten();
    user.zip(group).is_some_and(|(user, group)| {
        user.gid == group.gid && user.name == group.name && group.mem.iter().all(|member| *member == user.name)
    })
}

/// Whether no user in this user namespace has this id. Files of all users outside it, including root, appear under this id.
fn is_nobody_here(uid: u32) -> bool {
    let overflow = || fs::read_to_string("/proc/sys/kernel/overflowuid").ok()?.trim().parse::<u32>().ok();
    let maps_all = || fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| map.trim().ends_with("4294967295"));
    overflow() == Some(uid) && !maps_all()
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::core::housekeeping::file_ownership::Exposure;

    #[test]
    fn records_that_others_can_write_are_not_used() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("state");
        drop(crate::store::Store::open(&dir).unwrap());
        let database = dir.join("agent-cli.db");
        for (path, bad, good) in
            [(&database, 0o666, 0o600), (&dir, 0o777, 0o700), (&temp.path().to_owned(), 0o777, 0o700)]
        {
            fs::set_permissions(path, Permissions::from_mode(bad)).unwrap();
            let refused = crate::store::Store::open(&dir).map(drop);
            assert!(
                matches!(&refused, Err(StoreError::Exposed { exposed, .. }) if exposed.place == *path),
                "{refused:?}"
            );
            assert!(crate::store::Store::read_snapshot(&dir, |_| Ok(())).is_none());
            fs::set_permissions(path, Permissions::from_mode(good)).unwrap();
            trusted(&dir).unwrap();
        }
    }

    #[test]
    fn every_directory_on_the_way_counts() {
        let temp = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(temp.path()).unwrap();
        let [a, b, file, link] = ["a", "a/b", "a/b/file", "link"].map(|name| base.join(name));
        fs::create_dir_all(&b).unwrap();
        fs::write(&file, "").unwrap();
        symlink(&b, &link).unwrap();
        let all = [file, link.join("file"), b.clone(), b.join("none/x")];
        let seen = || all.each_ref().map(|path| exposed(path).unwrap().map(|exposed| exposed.place));
        assert_eq!(seen(), [None, None, None, None]);
        fs::set_permissions(&a, Permissions::from_mode(0o777)).unwrap();
        assert_eq!(seen(), [(); 4].map(|()| Some(a.clone())));
        fs::set_permissions(&a, Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(seen(), [None, None, None, None]);
        fs::set_permissions(&b, Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(
            exposed(&b).unwrap().map(|found| found.how),
            Some(Exposure::Shared),
            "what is trusted is not shared"
        );
    }
}

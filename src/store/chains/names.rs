//! The names that people give to chains.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension};

use crate::core::id::{ChainName, FrameId};
use crate::store::database::codec::{Id, id, path};
use crate::store::database::store::Store;
use crate::store::error::{Fault, Result, StoreError};

/// Which of the chains is meant.
pub(crate) enum Newest<'a> {
    /// Those of this name.
    Named(&'a ChainName),
    /// Those whose root works in a directory of which this is true.
    WorksIn(&'a mut dyn FnMut(&Path) -> bool),
}

impl Store {
    /// The newest chain that is meant.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub(crate) fn newest_chain(&self, of: Newest<'_>) -> Result<Option<FrameId>> {
        self.query(|connection| match of {
            Newest::Named(name) => {
                let mut statement = connection.prepare_cached(
                    "SELECT f.id FROM chains AS c CROSS JOIN frames AS f ON f.id = c.root
                     WHERE c.name = ?1 ORDER BY f.seq DESC LIMIT 1",
                )?;
                Ok(statement.query_row([name.as_str()], |row| id(row, "id")).optional()?)
            }
            Newest::WorksIn(is_meant) => {
                let mut statement =
                    connection.prepare_cached("SELECT id, cwd FROM frames WHERE parent IS NULL ORDER BY seq DESC")?;
                let mut rows = statement.query([])?;
                while let Some(row) = rows.next()? {
                    if is_meant(&path(row, "cwd")?) {
                        return Ok(Some(id(row, "id")?));
                    }
                }
                Ok(None)
            }
        })
    }
}

/// Names a chain that is being made. Of the chains that go on, one at most has a name.
pub(crate) fn give(connection: &Connection, root: FrameId, name: &ChainName) -> std::result::Result<(), Fault> {
    let mut taken = connection.prepare_cached(
        "SELECT f.id FROM chains AS c CROSS JOIN frames AS f ON f.id = c.root
         WHERE c.name = ?1 AND f.status IN ('ready', 'running', 'waiting') LIMIT 1",
    )?;
    if let Some(by) = taken.query_row([name.as_str()], |row| id(row, "id")).optional()? {
        return Err(StoreError::NameTaken { name: name.as_str().to_owned(), by }.into());
    }
    connection.prepare_cached("UPDATE chains SET name = ?2 WHERE root = ?1")?.execute((Id(root), name.as_str()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::NewFrame;
    use crate::store::testing::{new, reply, store};

    #[test]
    fn of_the_chains_that_go_on_one_has_the_name() {
        let (_temp, store) = store();
        let name: ChainName = "nightly".parse().unwrap();
        let named = || store.create_root(&NewFrame { name: Some(name.clone()), ..new("task") });
        let first = named().unwrap();
        assert!(matches!(named(), Err(StoreError::NameTaken { by, .. }) if by == first));
        assert_eq!(store.summaries(None).unwrap().len(), 1, "nothing was made");
        store.end(store.start(first), &reply("done"));
        let second = named().unwrap();
        assert_eq!(store.newest_chain(Newest::Named(&name)).unwrap(), Some(second));
        assert_eq!(store.newest_chain(Newest::Named(&"other".parse().unwrap())).unwrap(), None);
    }

    #[test]
    fn the_newest_chain_is_that_of_the_directory() {
        let (_temp, store) = store();
        let at = |cwd: &str| store.create_root(&NewFrame { cwd: cwd.into(), ..new("task") }).unwrap();
        let (_, newer, _) = (at("/a"), at("/a"), at("/b"));
        assert_eq!(store.newest_chain(Newest::WorksIn(&mut |cwd| cwd == Path::new("/a"))).unwrap(), Some(newer));
        assert_eq!(store.newest_chain(Newest::WorksIn(&mut |_| false)).unwrap(), None);
    }
}

//! The names that people give to chains.

use rusqlite::{Connection, OptionalExtension};

use crate::core::id::{ChainName, FrameId};
use crate::store::database::codec::{Id, id};
use crate::store::error::{StoreError, TxResult};

/// Names a chain that is being made. Of the chains that go on, one at most has a name.
pub(crate) fn give(connection: &Connection, root: FrameId, name: &ChainName) -> TxResult<()> {
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
    use crate::store::testing::{new, reply, store};
    use crate::store::{Chains, NewFrame};

    #[test]
    fn of_the_chains_that_go_on_one_has_the_name() {
        let (_temp, store) = store();
        let name: ChainName = "nightly".parse().unwrap();
        let named = || store.create_root(&NewFrame { name: Some(name.clone()), ..new("task") });
        let first = named().unwrap();
        assert!(matches!(named(), Err(StoreError::NameTaken { by, .. }) if by == first));
        assert_eq!(store.roots().len(), 1, "nothing was made");
        store.end(store.start(first), &reply("done"));
        let second = named().unwrap();
        let named = |name: &ChainName| store.chains(Chains::Named(name)).unwrap().chains;
        assert_eq!(named(&name).iter().map(|chain| chain.id).collect::<Vec<_>>(), [second]);
        assert_eq!(named(&"other".parse().unwrap()), []);
    }
}

//! The rights of users of the server, which the server enforces.

use crate::core::housekeeping::rights::{Grant, Right};
use crate::store::error::StoreError;
use crate::store::sql::database::codec::{path, path_text};
use crate::store::sql::engine::{Connection, Row, TxResult};

/// Whether this user may start chains in any project.
pub(crate) fn may_start(connection: &Connection) -> TxResult<bool> {
    if connection.host().is_none() {
        return Ok(true);
    }
    connection.read_one("SELECT agent_cli.may_in(NULL, 'start', TRUE) AS may", [], |row| row.get("may"))
}

pub(super) fn rights(connection: &Connection) -> TxResult<Vec<Grant>> {
    let read = |row: &Row<'_>| {
        let right = row.get::<_, String>("may")?.parse().unwrap_or(Right::Read);
        Ok(Grant { user: row.get("role")?, project: path(row, "project")?, right })
    };
    let mut found = connection.read_all("SELECT role, project, may FROM rights", [], read)?;
    found.sort();
    Ok(found)
}

const OWNER: &str = "SELECT pg_get_userbyid(nspowner)::text AS name FROM pg_namespace
     WHERE nspname = 'agent_cli' AND agent_cli.is_limited()";

/// The statements that let a user use the tables, or no longer. Row by row, the rights decide.
const ADMIT: &str = "SELECT format('GRANT USAGE ON SCHEMA agent_cli TO %1$I;
     GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA agent_cli TO %1$I', rolname) AS command
     FROM pg_roles WHERE rolname = ?1";
const SHUT_OUT: &str = "SELECT format('REVOKE ALL ON ALL TABLES IN SCHEMA agent_cli FROM %1$I;
     REVOKE ALL ON SCHEMA agent_cli FROM %1$I', rolname) AS command FROM pg_roles WHERE rolname = ?1";

/// Fails if this user does not own the database. `action` follows "can" in the error.
pub(super) fn check_owner(connection: &Connection, action: &'static str) -> TxResult<()> {
    match connection.read_first(OWNER, [], |row| row.get("name"))? {
        Some(owner) => Err(StoreError::NotOwner { owner, action }.into()),
        None => Ok(()),
    }
}

/// Gives these rights, or takes them away. Returns whether anything has changed.
pub(super) fn change(connection: &Connection, rights: &[Grant], is_given: bool) -> TxResult<bool> {
    check_owner(connection, "change rights")?;
    let mut changed = 0;
    for Grant { user, project, right } in rights {
        let command: Option<String> =
            connection.read_first(if is_given { ADMIT } else { SHUT_OUT }, [user], |row| row.get("command"))?;
        if is_given && command.is_none() {
            return Err(StoreError::UnknownUser(user.clone()).into());
        }
        let sql = if is_given {
            "INSERT INTO rights (role, project, may) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING"
        } else {
            "DELETE FROM rights WHERE role = ?1 AND project = ?2 AND may = ?3"
        };
        changed += connection.change(sql, (user, path_text(project)?, right.name()))?;
        let keeps = connection.finds("SELECT 1 FROM rights WHERE role = ?1", [user])?;
        // A user of the server can be removed before its rights.
        if let Some(command) = command.filter(|_| keeps == is_given) {
            connection.batch(&command)?;
        }
    }
    Ok(changed > 0)
}

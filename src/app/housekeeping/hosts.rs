//! Lists and changes the hosts of a shared database, and takes chains from hosts that are lost.

use crate::app::App;
use crate::app::asker::PersonsTask;
use crate::app::error::{AppError, Refusal};
use crate::app::view::outcome::host::HostView;
use crate::core::chain::frame_state::FrameState;
use crate::core::housekeeping::hosting::{NotTaken, Offer};
use crate::core::id::FrameId;
use crate::runtime::run::status;
use crate::store::hosts::{Host, Hosts, Wanted};
use crate::store::{Store, StoreError};

/// All hosts, this one first.
pub(crate) fn list(app: &App<'_>) -> Result<Vec<HostView>, AppError> {
    app.asker.may(PersonsTask::ManageHosts)?;
    Ok(shared(app.store)?.hosts()?.into_iter().map(|host| HostView::new(host, app.now)).collect())
}

/// Makes a host start no more agents, or lets it start agents again. Returns the host's name.
pub(crate) fn drain(app: &App<'_>, named: &str, is_draining: bool) -> Result<String, AppError> {
    app.asker.may(PersonsTask::ManageHosts)?;
    let hosts = shared(app.store)?;
    let name = found(hosts, named)?.name;
    hosts.drain(&name, is_draining)?;
    Ok(name)
}

/// Returns the host to forget, for a confirmation.
pub(crate) fn to_forget(app: &App<'_>, named: &str) -> Result<Host, AppError> {
    app.asker.may(PersonsTask::ManageHosts)?;
    let host = found(shared(app.store)?, named)?;
    if host.is_here {
        return Err(Refusal::new(format!("cannot forget {}, because it is this host", host.name))
            .hint("run the command on another host")
            .into());
    }
    match host.lease {
        Some(left) => Err(StoreError::HostInUse { host: host.name, left }.into()),
        None => Ok(host),
    }
}

/// Releases all chains of a host that is lost, and returns the number of those that have not ended.
pub(crate) fn forget(app: &App<'_>, host: &Host) -> Result<u64, AppError> {
    app.asker.may(PersonsTask::ManageHosts)?;
    Ok(shared(app.store)?.forget(&host.name)?)
}

/// Whether a chain of another host waits, and nothing in it could run.
pub(crate) fn waits_elsewhere(store: &Store, top: FrameId) -> Result<bool, AppError> {
    if store.elsewhere(top)?.is_none() {
        return Ok(false);
    }
    Ok(!runs(store, top)? && status::poll(store, top)?.is_some())
}

/// Whether an agent of the chain is recorded as running.
pub(crate) fn runs(store: &Store, top: FrameId) -> Result<bool, AppError> {
    Ok(store.tree(top)?.all().any(|node| matches!(node.state, FrameState::Running { .. })))
}

/// Takes the chain of `top` if another host has lost it or no host has it yet. Returns why this host may not run it.
pub(crate) fn take(
    store: &Store,
    top: FrameId,
    offer: impl FnOnce() -> Result<Offer, AppError>,
) -> Result<Option<StoreError>, AppError> {
    let Some(hosts) = store.hosts() else { return Ok(None) };
    let Some(elsewhere) = store.elsewhere(top)? else { return Ok(None) };
    let root = store.chain_of(top)?.root;
    Ok(match hosts.take(Wanted::Chain(root), &offer()?) {
        Ok(Some(_)) => None,
        // Another host was faster.
        Ok(None) | Err(StoreError::NotTaken { why: NotTaken::Alive(_), .. }) => {
            let elsewhere = store.elsewhere(top)?.unwrap_or(elsewhere);
            Some(StoreError::OtherHost { root, elsewhere })
        }
        Err(why @ StoreError::NotTaken { .. }) => Some(why),
        Err(error) => return Err(error.into()),
    })
}

/// The hosts, unless the database is a file.
pub(crate) fn shared(store: &Store) -> Result<&dyn Hosts, Refusal> {
    store.hosts().ok_or_else(|| {
        Refusal::new("the chains are recorded in a file, which only this host uses")
            .hint("agent-cli move --to postgres://… records them on a server that hosts share; see docs/server.md")
    })
}

/// Refuses a chain for any host whose agents could only begin on this one.
pub(crate) fn begins_anywhere(in_own_worktree: bool, is_fork: bool) -> Result<(), Refusal> {
    let (why, hint) = if in_own_worktree {
        let hint = "add --remote NAME, or leave --worktree out (--worktree=false overrides the setting)";
        ("--worktree alone: the worktree would exist only on this host", hint)
    } else if is_fork {
        ("--fork-from: that conversation is only on this host", "leave one of them out")
    } else {
        return Ok(());
    };
    Err(Refusal::new(format!("--on does not work with {why}")).hint(hint))
}

/// The host with this name, or the only one whose name begins like this.
fn found(hosts: &dyn Hosts, named: &str) -> Result<Host, AppError> {
    let mut all = hosts.hosts()?;
    if let Some(exact) = all.iter().position(|host| host.name == named) {
        return Ok(all.swap_remove(exact));
    }
    all.retain(|host| host.name.starts_with(named));
    match all.len() {
        1 => Ok(all.swap_remove(0)),
        0 => Err(StoreError::UnknownHost(named.to_owned()).into()),
        _ => {
            let names: Vec<String> = all.into_iter().map(|host| host.name).collect();
            Err(Refusal::new(format!("several hosts begin with {named}: {}", names.join(", ")))
                .hint("type more of the name")
                .into())
        }
    }
}

//! Continues a chain in a separate process.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;

use crate::claude::invocation::STATE_DIR;
use crate::core::id::FrameId;
use crate::runtime::run::scheduler::Drive;
use crate::runtime::{RunSettings, RuntimeError, while_trying};
use crate::store::{Chains, Store};

/// Starts a process that continues a chain as `resume --all` would: failed and interrupted agents are left to people. The
/// process has its own process group, so that it outlives the process that starts it. It ends at once if another process
/// runs the chain.
pub(crate) fn start(store: &Store, settings: &RunSettings, root: FrameId) -> Result<(), RuntimeError> {
    let mut command = Command::new(&settings.own_program);
    command.args(["resume", "--unattended", &root.to_string()]).env(STATE_DIR, store.dir().path()).process_group(0);
    // The runner's own option counts for the chains that its agents detach, too.
    command.env("AGENT_CLI_LINGER", format!("{}ms", settings.linger.as_millis()));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut started = command.spawn().map_err(while_trying("start a process for the chain"))?;
    // Without this, it would remain a zombie as long as this process lives.
    thread::spawn(move || started.wait());
    Ok(())
}

impl Drive<'_> {
    /// Starts a process for each chain that an agent of this one has detached. If it cannot start, or dies, any process
    /// that continues all chains continues that chain.
    pub(super) fn start_detached(&mut self) -> Result<(), RuntimeError> {
        if self.stop.borrow().any() {
            return Ok(());
        }
        for chain in self.store.chains(Chains::NewDetached(self.root))?.chains.into_iter().map(|chain| chain.id) {
            if self.detached.insert(chain)
                && let Err(error) = start(self.store, self.settings, chain)
            {
                tracing::warn!("{}: {error}", chain.short());
            }
        }
        Ok(())
    }
}

//! Fetches the worktree of an agent before it starts.

use crate::core::chain::frame::Frame;
use crate::runtime::RuntimeError;
use crate::runtime::recovery::portable_worktree::PortableWorktree;
use crate::runtime::run::scheduler::Drive;

impl Drive<'_> {
    /// Fetches what is missing of an agent's worktree. That may take long: other chains of this process continue in the meantime, and a
    /// signal ends it.
    pub(super) async fn fetch_worktree(&self, frame: &Frame) -> Result<(), RuntimeError> {
        let Some(portable) = PortableWorktree::of(self.store, frame)? else { return Ok(()) };
        let (dir, mut stop) = (self.store.dir().clone(), self.stop.clone());
        let interrupted = async move {
            if stop.wait_for(|signals| signals.any()).await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        let fetched = tokio::task::spawn_blocking(move || portable.fetch(&dir, interrupted)).await;
        fetched.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
    }
}

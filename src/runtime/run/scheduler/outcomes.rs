//! Decides what an error means for a run, and notes what a person is told about agents after it, and at once if it cannot wait.

use std::time::Duration;

use jiff::Timestamp;

use crate::core::attempt::decision::{Decision, Next};
use crate::core::chain::progress_lines::end_step;
use crate::core::id::FrameId;
use crate::core::text::shell::quoted;
use crate::local_zone::local_zone;
use crate::runtime::RuntimeError;
use crate::runtime::conclude::spans::of_attempt;
use crate::runtime::recovery::room;
use crate::runtime::run::driven::{Busy, Driven};
use crate::runtime::run::frame_error::FrameErrorKind;
use crate::runtime::run::scheduler::Drive;
use crate::store::{Attempts, StateChange, StoreError, TreeOf};

/// How long to wait before the next attempt to reach the server with the database.
const WITHOUT_SERVER: Duration = Duration::from_secs(1);

impl Drive<'_> {
    /// Waits for a server that cannot be reached for a while. After another error, or if the lease ends first, ends the agents,
    /// because other hosts could continue them.
    pub(super) async fn run_or_end(mut self) -> Result<Driven, RuntimeError> {
        loop {
            match self.run().await {
                Err(RuntimeError::Store(error @ (StoreError::Server { .. } | StoreError::Busy(_))))
                    if !self.live.is_empty() && self.lease.holds() =>
                {
                    tracing::warn!("{}: retrying: {error}", self.top.short());
                    tokio::time::sleep(WITHOUT_SERVER).await;
                }
                driven => {
                    if driven.is_err() {
                        self.lease.end(self.live.keys().copied());
                    }
                    return driven;
                }
            }
        }
    }

    /// The command that starts the chain again.
    pub(super) fn anew(&self) -> Result<String, RuntimeError> {
        let root = self.store.frame(self.root)?;
        Ok(root.map_or_else(String::new, |root| {
            format!("cd {} && {}", quoted(&root.cwd.display().to_string()), root.task.command())
        }))
    }

    /// Reports how the last attempt of a frame has ended.
    pub(super) fn report_end(&self, id: FrameId) -> Result<(), RuntimeError> {
        self.trace_end(id);
        if tracing::enabled!(tracing::Level::INFO) && !(id == self.top && self.settings.places.is_some()) {
            let (family, zone) = (self.store.tree(TreeOf::Family(id))?, local_zone());
            let is_group = self.store.frame(self.top)?.is_some_and(|top| top.task.is_group());
            let say = |node| tracing::info!("{}", end_step(&family, node, self.top, is_group, Timestamp::now(), &zone));
            family.get(id).into_iter().for_each(say);
        }
        Ok(())
    }

    /// Sends a span for the last attempt of a frame. A span that cannot be read is not worth a failed run.
    pub(super) fn trace_end(&self, id: FrameId) {
        let Some(spans) = &self.settings.spans else { return };
        match of_attempt::last_attempt(self.store, id) {
            Ok(span) => span.into_iter().for_each(|span| spans.record(span)),
            Err(error) => tracing::debug!("{}: a span is lost: {error}", id.short()),
        }
    }

    pub(super) fn take_note(&mut self, id: FrameId, decision: &Decision) -> Result<(), RuntimeError> {
        self.driven.ended(id, decision);
        if decision.is_unrecorded {
            self.tell_of_no_room(id)?;
        }
        if let Some(why) = FrameErrorKind::from_decision(decision, || self.anew())? {
            self.driven.failed(id, why);
        }
        if decision.next == Next::Skip {
            self.attempted.skip(id, Timestamp::now());
        }
        Ok(())
    }

    /// Reports immediately that an agent's work is lost: others may work for hours.
    fn tell_of_no_room(&mut self, id: FrameId) -> Result<(), RuntimeError> {
        let Some(frame) = self.store.frame(id)? else { return Ok(()) };
        let why = FrameErrorKind::Unrecorded(room::folder_of(&frame).unwrap_or_default());
        tracing::warn!("{}: {why}: free some space", id.short());
        self.driven.failed(id, why);
        Ok(())
    }

    pub(super) fn fail(&mut self, frame: FrameId, why: FrameErrorKind) -> Result<(), RuntimeError> {
        self.store.change_state(frame, StateChange::PutOff(&why.to_string()))?;
        self.attempted.skip(frame, Timestamp::now());
        self.events.look_again();
        self.driven.failed(frame, why);
        Ok(())
    }

    pub(super) fn note_busy(&mut self, frame: FrameId) -> Result<(), RuntimeError> {
        let runner = self.store.attempts(Attempts::RunningOf(frame))?.pop().map(|attempt| attempt.runner);
        self.driven.is_busy(Busy { frame, runner });
        Ok(())
    }
}

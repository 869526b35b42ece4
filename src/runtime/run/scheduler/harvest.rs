//! Handles ends that no agent of this process has caused: attempts whose runner died, and groups.

use std::collections::HashSet;

use crate::claude::processes::process::ProcessExit;
use crate::core::chain::frame_state::FrameState;
use crate::core::chain::progress_lines::step;
use crate::core::chain::tree::Tree;
use crate::core::id::FrameId;
use crate::failpoint::{self, Step};
use crate::runtime::RuntimeError;
use crate::runtime::conclude::{self, Begun};
use crate::runtime::run::background;
use crate::runtime::run::scheduler::Drive;
use crate::store::{Lease, StateChange};

impl Drive<'_> {
    /// Concludes attempts whose runner died, in the whole chain, because they count towards its limits. Attempts of running
    /// processes are skipped. Returns whether there were any.
    pub(super) fn harvest(&mut self, tree: &Tree) -> Result<bool, RuntimeError> {
        let mut any = false;
        let below: HashSet<FrameId> = tree.leaves_up().into_iter().map(|node| node.id).collect();
        for node in tree.all() {
            if !matches!(node.state, FrameState::Running { .. }) || self.live.contains_key(&node.id) {
                continue;
            }
            let is_below = below.contains(&node.id);
            let left = || {
                Ok::<_, RuntimeError>(
                    background::taken_from_abandoned(self.store, node.id)?.map(|lease| (lease, ProcessExit::Ended)),
                )
            };
            let free = Lease::try_take(self.store.dir(), node.id)?.map(|lease| (lease, ProcessExit::Unknown));
            let Some((lease, exit)) = free.map_or_else(left, |free| Ok(Some(free)))? else {
                if is_below {
                    self.note_busy(node.id)?;
                }
                continue;
            };
            let Some(frame) = self.store.frame(node.id)? else { continue };
            let harvested =
                || conclude::conclude(self.store, &self.settings.prices, &frame, Begun::Earlier, exit, &lease);
            if let Some(decision) = failpoint::around(Step::Harvest, harvested)? {
                tracing::info!("{}", step(node.id, &node.title, "its runner had died"));
                self.report_end(node.id)?;
                if is_below {
                    self.take_note(node.id, &decision)?;
                }
                self.events.look_again();
                any = true;
            }
        }
        Ok(any)
    }

    /// Ends groups whose members have all ended, and agents that handed off to one that has replied. This starts no process, so no
    /// limit on processes applies. Returns whether there were any.
    pub(super) fn end_without_attempts(&mut self, tree: &Tree) -> Result<bool, RuntimeError> {
        let mut any = false;
        for frame in tree.handoffs_to_end() {
            if self.store.change_state(frame, StateChange::EndHandoff)?.is_some() {
                tracing::info!("{}: the agent that it handed off to has replied", frame.short());
                any = true;
            }
        }
        for group in tree.groups_to_end() {
            if self.store.change_state(group, StateChange::EndGroup)?.is_some() {
                tracing::info!("{}: all agents of the group have ended", group.short());
                any = true;
            }
        }
        Ok(any)
    }
}

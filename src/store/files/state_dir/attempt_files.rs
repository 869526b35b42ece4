//! The files of a frame that exist only during an attempt, for its `claude` and the process that runs it.

use std::fs;
use std::io;
use std::path::PathBuf;

use crate::core::id::FrameId;
use crate::failpoint::Step;
use crate::store::files::entries::remove;
use crate::store::files::state_dir::StateDir;

/// The name of the file that stops a frame's agent.
pub(crate) const STOP: &str = "stop";
/// Its content if the agent must not finish the running tool.
const STOP_NOW: &[u8] = b"now";
/// Its content after the process that runs the agent has read it.
const STOP_NOTICED: &[u8] = b"noticed";
/// Its content if the budget of the chain is spent.
const STOP_FOR_BUDGET: &[u8] = b"budget";
/// The name of the file that announces messages for a frame's agent.
pub(crate) const MESSAGE: &str = "message";

impl StateDir {
    /// The settings for a frame's `claude`.
    pub(crate) fn settings(&self, frame: FrameId) -> PathBuf {
        self.frame_path(frame).join("settings.json")
    }

    /// The file that points a frame's `claude` to the tool that decides on approvals.
    pub(crate) fn permission_tool(&self, frame: FrameId) -> PathBuf {
        self.frame_path(frame).join("permission-tool.json")
    }

    /// The file that asks a frame's `claude` to stop when its running tool has finished.
    pub(crate) fn stop_file(&self, frame: FrameId) -> PathBuf {
        self.frame_path(frame).join(STOP)
    }

    /// The file that announces messages to a frame's `claude`.
    pub(crate) fn message_file(&self, frame: FrameId) -> PathBuf {
        self.frame_path(frame).join(MESSAGE)
    }

    /// Announces messages to a frame's `claude`.
    pub(crate) fn note_message(&self, frame: FrameId) -> io::Result<()> {
        self.write(Step::Tell, &self.message_file(frame), b"")
    }

    /// Removes the announcement. Messages that are recorded later are announced again.
    pub(crate) fn forget_messages(&self, frame: FrameId) -> io::Result<()> {
        remove(&self.message_file(frame))
    }

    /// Asks a frame's `claude` to stop when its running tool has finished.
    pub(crate) fn ask_to_stop(&self, frame: FrameId, now: bool) -> io::Result<()> {
        self.write(Step::Stop, &self.stop_file(frame), if now { STOP_NOW } else { b"" })
    }

    /// Asks a frame's `claude` to stop like this because the budget is spent, which no record says.
    pub(crate) fn stop_for_budget(&self, frame: FrameId) -> io::Result<()> {
        self.write(Step::Stop, &self.stop_file(frame), STOP_FOR_BUDGET)
    }

    pub(crate) fn stops_for_budget(&self, frame: FrameId) -> bool {
        fs::read(self.stop_file(frame)).is_ok_and(|text| text == STOP_FOR_BUDGET)
    }

    /// Records that the process which runs a frame's `claude` is stopping it.
    pub(crate) fn notice_stop(&self, frame: FrameId) -> io::Result<()> {
        self.write(Step::Stop, &self.stop_file(frame), STOP_NOTICED)
    }

    /// Whether that process has noticed the request, or the file is missing: it has stopped the agent.
    pub(crate) fn is_stop_noticed(&self, frame: FrameId) -> bool {
        fs::read(self.stop_file(frame)).map_or(true, |text| text == STOP_NOTICED)
    }

    /// Whether the running tool must not finish.
    pub(crate) fn is_to_stop_now(&self, frame: FrameId) -> bool {
        fs::read(self.stop_file(frame)).is_ok_and(|text| text == STOP_NOW)
    }

    /// Withdraws the request to stop.
    pub(crate) fn forget_stop(&self, frame: FrameId) -> io::Result<()> {
        remove(&self.stop_file(frame))
    }
}

//! Reads what an agent has done so far.

use std::fs::File;
use std::io::{self, Read};

use crate::claude::stream::line_cutter::LineCutter;
use crate::claude::stream::translate::translate;
use crate::core::attempt::partial::Partial;
use crate::core::chain::frame_state::FrameState;
use crate::core::chain::tree::Node;
use crate::core::id::FrameId;
use crate::core::steering::stop_order::Stop;
use crate::runtime::{READ_PRINTED, RuntimeError, while_trying};
use crate::store::Store;

/// Longer texts are of no use in a report.
const LONGEST: usize = 16 * 1024;

/// What an agent has done so far, for its parent.
pub(crate) fn read(store: &Store, frame: FrameId, stop: &Stop) -> Result<String, RuntimeError> {
    let read_printed = || -> io::Result<Partial> {
        let mut partial = Partial::default();
        let mut printed = match File::open(store.dir().printed(frame)) {
            Ok(printed) => printed,
            // It has not begun.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(partial),
            Err(error) => return Err(error),
        };
        let (mut cutter, mut bytes) = (LineCutter::new(Some(LONGEST)), vec![0; 64 * 1024]);
        loop {
            let read = printed.read(&mut bytes)?;
            if read == 0 {
                return Ok(partial);
            }
            cutter.push(&bytes[..read], |line| {
                let translated = translate(line.text, None);
                let of_subagent = translated.parent_tool_use_id.is_some();
                translated.happenings.iter().for_each(|happening| partial.absorb(happening, of_subagent));
            });
        }
    };
    Ok(read_printed().map_err(while_trying(READ_PRINTED))?.report(stop))
}

/// Reports on the resting agents among `top` and all below it: what they have done so far, because they may not run again
/// to report it. Their callers may continue, even if they are stopped, too.
pub(crate) fn read_resting(store: &Store, top: FrameId, stop: &Stop) -> Result<Vec<(FrameId, String)>, RuntimeError> {
    let tree = store.tree(top)?;
    let rests = |node: &&Node| !node.is_group && !node.is_over() && !matches!(node.state, FrameState::Running { .. });
    tree.all().filter(rests).map(|node| Ok((node.id, read(store, node.id, stop)?))).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::core::steering::stop_order::{By, StopKind};
    use crate::store::testing;

    #[test]
    fn a_stopped_agent_reports_what_it_printed_and_one_that_never_ran_nothing() {
        let (_temp, store) = testing::store();
        let frame = store.root();
        let stop = Stop { how: StopKind::Stop, now: false, by: By::Person, reason: None, of: frame, report: None };
        let report = || read(&store, frame, &stop);
        assert!(report().unwrap().contains("It used no tools."));
        store.dir().frame_dir(frame).unwrap();
        let said = |text: &str, parent: &str| {
            let content = format!(r#"[{{"type":"text","text":"{text}"}}]"#);
            format!(r#"{{"type":"assistant","message":{{"content":{content}}},"parent_tool_use_id":{parent}}}"#) + "\n"
        };
        // Larger than one read.
        let long = "x".repeat(200_000);
        let lines = [said("I begin.", "null"), said(&long, "\"toolu_1\""), said("Half done.", "null")];
        fs::write(store.dir().printed(frame), lines.concat()).unwrap();
        let report = report().unwrap();
        assert!(report.ends_with("What it said last:\nHalf done."), "{report}");
    }

    #[test]
    fn what_cannot_be_read_is_no_report() {
        let (_temp, store) = testing::store();
        let frame = store.root();
        let stop = Stop { how: StopKind::Stop, now: false, by: By::Person, reason: None, of: frame, report: None };
        let folder = store.dir().frame_path(frame);
        fs::create_dir_all(folder.parent().unwrap()).unwrap();
        fs::write(folder, "not a folder").unwrap();
        assert!(read(&store, frame, &stop).is_err());
    }
}

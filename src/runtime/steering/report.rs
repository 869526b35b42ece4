//! Reads what an agent has done so far.

use std::fs::File;
use std::io::{self, Read};

use crate::claude::events::line_cutter::LineCutter;
use crate::claude::events::translate::translate;
use crate::core::id::FrameId;
use crate::core::steering::partial::Partial;
use crate::core::steering::stop::Stop;
use crate::runtime::{READ_PRINTED, RuntimeError, while_trying};
use crate::store::Store;

/// Longer texts than this are of no use in a report.
const LONGEST: usize = 16 * 1024;

/// What an agent has done so far, for its parent.
pub(crate) fn of(store: &Store, frame: FrameId, stop: &Stop) -> Result<String, RuntimeError> {
    let read = || -> io::Result<Partial> {
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
                let translated = translate(line.text);
                let of_subagent = translated.parent_tool_use_id.is_some();
                translated.happenings.iter().for_each(|happening| partial.absorb(happening, of_subagent));
            });
        }
    };
    Ok(read().map_err(while_trying(READ_PRINTED))?.report(stop))
}

//! What an agent said last.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use crate::claude::events::line_cutter::LineCutter;
use crate::claude::events::translate::translate;
use crate::core::attempt::signal::Signal;
use crate::core::events::agent_event::Happening;
use crate::core::id::FrameId;
use crate::runtime::{READ_PRINTED, RuntimeError, while_trying};
use crate::store::Store;

/// How much of the end of the output is read, in bytes. What an agent says before it asks is near its end.
const TAIL: u64 = 1024 * 1024;
/// Longer texts are cut.
const LONGEST: usize = 4_000;

/// The last text of a frame's agent itself; `None`: it has not said anything lately.
pub(crate) fn last_words(store: &Store, frame: FrameId) -> Result<Option<String>, RuntimeError> {
    let read = || -> io::Result<Option<String>> {
        let mut printed = match File::open(store.dir().printed(frame)) {
            Ok(printed) => printed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let from = printed.metadata()?.len().saturating_sub(TAIL);
        printed.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        printed.take(TAIL).read_to_end(&mut bytes)?;
        let mut said = None;
        LineCutter::new(Some(LONGEST)).push(&bytes, |line| {
            let translated = translate(line.text);
            for happening in translated.happenings {
                if let Happening::Text { text } = happening
                    && translated.parent_tool_use_id.is_none()
                    && !text.trim().is_empty()
                    && Signal::on_a_line(&text).is_none()
                {
                    said = Some(if line.cut { format!("{}…", text.trim_end()) } else { text });
                }
            }
        });
        Ok(said)
    };
    read().map_err(while_trying(READ_PRINTED))
}

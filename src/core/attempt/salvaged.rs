//! How much of a conversation can be continued from. `claude` may not have written down everything it printed: it may
//! have been killed in between, and on a full disk it continues silently.

/// What can be continued from after an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Salvage {
    /// All of it, as far as known.
    Whole,
    /// Everything that the agent was given, but not everything it did.
    Part,
    Nothing,
}

/// What is known about a conversation without reading it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signs {
    pub has_result: bool,
    /// Whether its process was killed, perhaps before it had written down what it printed.
    pub was_killed: bool,
    pub has_transcript: bool,
    /// Whether there is no room for a transcript.
    pub has_no_room: bool,
    /// Whether the transcript ends in an incomplete line, or is missing.
    pub is_cut: bool,
    /// Whether `claude` reported that the session is suspended at a call.
    pub is_suspended: bool,
}

/// What reading the transcript has shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Contents {
    /// Whether a session can continue from it: it has the whole conversation that it was forked from, and something that followed.
    pub continues: bool,
    /// Whether it has every result that the agent was given.
    pub has_deliveries: bool,
    /// Whether it has the last message that was printed.
    pub has_end: bool,
    /// Whether it marks the call at which the session is reported to be suspended.
    pub marks_suspension: bool,
}

impl Signs {
    /// The result, if it is clear without reading the transcript.
    pub(crate) fn unread(self) -> Option<Salvage> {
        if !self.has_transcript {
            // A process that ended normally has one, perhaps in a place where only a newer version keeps it.
            let is_lost = self.may_be_unwritten() || self.has_no_room;
            return Some(if is_lost { Salvage::Nothing } else { Salvage::Whole });
        }
        (!self.may_be_unwritten() && !self.is_cut && !self.is_suspended).then_some(Salvage::Whole)
    }

    pub(crate) fn salvage(self, contents: Contents) -> Salvage {
        let lacks_its_end =
            self.is_cut || (self.is_suspended && !contents.marks_suspension) || (self.was_killed && !contents.has_end);
        let continues = contents.continues && contents.has_deliveries;
        if (self.may_be_unwritten() || lacks_its_end) && !continues {
            Salvage::Nothing
        } else if self.has_result && !lacks_its_end {
            Salvage::Whole
        } else {
            Salvage::Part
        }
    }

    /// A process that ended normally has written its transcript. One that was killed may not have, even after its
    /// result.
    fn may_be_unwritten(self) -> bool {
        !self.has_result || self.was_killed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that ended normally, with a transcript.
    const ENDED: Signs = Signs {
        has_result: true,
        was_killed: false,
        has_transcript: true,
        has_no_room: false,
        is_cut: false,
        is_suspended: false,
    };
    const KILLED: Signs = Signs { was_killed: true, ..ENDED };
    const DIED: Signs = Signs { has_result: false, ..ENDED };
    const ALL: Contents = Contents { continues: true, has_deliveries: true, has_end: true, marks_suspension: true };

    #[test]
    fn a_transcript_is_read_only_where_it_may_lack_something() {
        assert_eq!(ENDED.unread(), Some(Salvage::Whole));
        for doubtful in [KILLED, DIED, Signs { is_cut: true, ..ENDED }, Signs { is_suspended: true, ..ENDED }] {
            assert_eq!(doubtful.unread(), None, "{doubtful:?}");
        }
    }

    #[test]
    fn without_a_transcript_nothing_is_there_of_what_was_killed() {
        let full = Signs { has_no_room: true, ..ENDED };
        assert_eq!(full.unread(), Some(Salvage::Whole), "it was written before the disk was full");
        for (remains, salvage) in
            [(ENDED, Salvage::Whole), (full, Salvage::Nothing), (KILLED, Salvage::Nothing), (DIED, Salvage::Nothing)]
        {
            assert_eq!(Signs { has_transcript: false, ..remains }.unread(), Some(salvage));
        }
    }

    #[test]
    fn what_was_killed_is_continued_from_if_it_has_all_that_it_was_given() {
        let undelivered = Contents { has_deliveries: false, ..ALL };
        let mute = Contents { continues: false, ..ALL };
        let endless = Contents { has_end: false, ..ALL };
        for (remains, transcript, salvage) in [
            (KILLED, ALL, Salvage::Whole),
            (KILLED, endless, Salvage::Part),
            (KILLED, undelivered, Salvage::Nothing),
            (KILLED, mute, Salvage::Nothing),
            (DIED, ALL, Salvage::Part),
            (DIED, undelivered, Salvage::Nothing),
            (DIED, mute, Salvage::Nothing),
        ] {
            assert_eq!(remains.salvage(transcript), salvage, "{remains:?} {transcript:?}");
        }
    }

    #[test]
    fn what_came_to_its_end_may_lack_it() {
        let suspended = Signs { is_suspended: true, ..ENDED };
        let cut = Signs { is_cut: true, ..ENDED };
        let unmarked = Contents { marks_suspension: false, ..ALL };
        let undelivered = |transcript| Contents { has_deliveries: false, ..transcript };
        for (remains, transcript, salvage) in [
            (suspended, ALL, Salvage::Whole),
            (suspended, undelivered(ALL), Salvage::Whole),
            (suspended, unmarked, Salvage::Part),
            (suspended, undelivered(unmarked), Salvage::Nothing),
            (cut, ALL, Salvage::Part),
            (cut, undelivered(ALL), Salvage::Nothing),
        ] {
            assert_eq!(remains.salvage(transcript), salvage, "{remains:?} {transcript:?}");
        }
    }
}

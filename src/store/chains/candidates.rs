//! Which chains may be able to continue, found without reading every chain.

use jiff::Timestamp;
use rusqlite::{Connection, Row};

use crate::core::chain::pace::{self, Candidate, Stir};
use crate::core::chain::state::FrameState;
use crate::core::chain::state::Wait;
use crate::core::requests::question::Form;
use crate::core::requests::request::RequestKind;
use crate::core::waits::conditions::{External, Matching};
use crate::core::waits::progress::Progress;
use crate::store::database::codec::{from_json, id, maybe_json, time};
use crate::store::database::store::Store;
use crate::store::error::Result;

// All go through a partial index and repeat its condition word for word. A frame that waits for an open request does not
// stir: whoever resolves the request makes it a candidate.
const STIRRING: &str = "SELECT root, state, since, created FROM frames INDEXED BY stirring_frames
     WHERE status IN ('ready', 'running', 'waiting')
     AND (status <> 'waiting' OR NOT EXISTS
         (SELECT 1 FROM requests AS r INDEXED BY open_requests WHERE r.frame = frames.id AND r.status = 'open'))
     ORDER BY seq";
const WHOLE: &str = r#"[}"]\s*$"#;
const OUTSIDE: &str =
    "SELECT f.root, r.detail, r.looked FROM requests AS r INDEXED BY open_waits JOIN frames AS f ON f.id = r.frame
     WHERE r.kind = 'wait' AND r.status = 'open' ORDER BY r.seq";
const EXPIRING: &str = "SELECT f.root, r.detail, r.looked FROM requests AS r INDEXED BY expiring_questions
     JOIN frames AS f ON f.id = r.frame
     WHERE r.status = 'open' AND json_extract(r.detail, '$.ask.expires_at') IS NOT NULL ORDER BY r.seq";
const IN_FILES: &str = "SELECT f.root, r.detail, r.looked FROM requests AS r INDEXED BY questions_in_files
     JOIN frames AS f ON f.id = r.frame
     WHERE r.status = 'open' AND json_extract(r.detail, '$.ask.file') IS NOT NULL ORDER BY r.seq";

// Whoever writes the file of an answer cannot be seen in the database.
const POSTED: &str =
    "SELECT f.root, r.detail, r.looked FROM requests AS r INDEXED BY posted_questions JOIN frames AS f ON f.id = r.frame
     WHERE r.status = 'open' AND json_type(r.detail, '$.ask.posted') IS NOT NULL ORDER BY r.seq";

impl Store {
    /// The chains that may be able to continue at `now`, some of them more than once. Those that are failed or
    /// interrupted or paused are not among them: whether they are tried again is for a person to say.
    pub(crate) fn candidates(&self, now: Timestamp) -> Result<Vec<Candidate>> {
        self.query(|connection| {
            let mut candidates = stirring(connection, now)?;
            candidates.extend(requests(connection, OUTSIDE, |kind| match kind {
                RequestKind::Wait(wait) => Some(Stir::Outside(wait)),
                _ => None,
            })?);
            candidates.extend(requests(connection, POSTED, until_readable)?);
            candidates.extend(requests(connection, POSTED, in_file)?);
            candidates.extend(requests(connection, EXPIRING, |kind| match kind {
                RequestKind::Ask(Form { expires_at, .. }) => expires_at.map(Stir::Until),
                _ => None,
            })?);
            candidates.extend(requests(connection, IN_FILES, in_file)?);
            Ok(candidates)
        })
    }
}

fn stirring(connection: &Connection, now: Timestamp) -> rusqlite::Result<Vec<Candidate>> {
    let mut statement = connection.prepare_cached(STIRRING)?;
    let read = |row: &Row<'_>| {
        let (state, since, created) = (from_json(row, "state")?, time(row, "since")?, time(row, "created")?);
        let stir = match state {
            FrameState::Running { .. } => Stir::Running,
            FrameState::Waiting { wait: Wait::AgentDecides } => Stir::AgentDecides,
            FrameState::Waiting { wait } => wait.paused_until(since, now).map_or(Stir::Free, Stir::Until),
            FrameState::Ready if since == created => {
                pace::left_to_its_maker(created, now).map_or(Stir::Free, Stir::Until)
            }
            FrameState::Ready => Stir::Free,
            FrameState::Done | FrameState::Failed { .. } | FrameState::Cancelled | FrameState::Paused { .. } => {
                return Ok(None);
            }
        };
        Ok(Some(Candidate { root: id(row, "root")?, stir, progress: Progress::default() }))
    };
    statement.query_map([], read)?.filter_map(std::result::Result::transpose).collect()
}

/// The chains with the requests that `sql` finds, as far as they have a reason to continue.
fn requests(
    connection: &Connection,
    sql: &str,
    stir: impl Fn(RequestKind) -> Option<Stir>,
) -> rusqlite::Result<Vec<Candidate>> {
    let mut statement = connection.prepare_cached(sql)?;
    let read = |row: &Row<'_>| {
        let Some(stir) = stir(from_json(row, "detail")?) else { return Ok(None) };
        Ok(Some(Candidate { root: id(row, "root")?, stir, progress: maybe_json(row, "looked")?.unwrap_or_default() }))
    };
    statement.query_map([], read)?.filter_map(std::result::Result::transpose).collect()
}

fn in_file(kind: RequestKind) -> Option<Stir> {
    match kind {
        RequestKind::Ask(form) => Some(Stir::InFile { form: Box::new(form), changed: None }),
        _ => None,
    }
}

/// A posted question is read again as long as it cannot be read. A whole file ends like this. One that is half-written has the
/// chain looked at when it changes again.
fn until_readable(kind: RequestKind) -> Option<Stir> {
    let RequestKind::Ask(Form { posted: Some(posted), .. }) = kind else { return None };
    let file = posted.trouble.as_ref().and_then(|_| posted.pending())?;
    Some(Stir::Outside(External::Matching(Matching { file, pattern: WHOLE.to_owned(), within: None })))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::core::attempt::ending::Ending;
    use crate::core::id::FrameId;
    use crate::core::requests::request::External;
    use crate::store::requests::request::Seen;
    use crate::store::testing::{ask, new, reply, store};

    fn found(store: &Store) -> Vec<(FrameId, Stir)> {
        let candidates = store.candidates(Timestamp::now()).unwrap();
        candidates.into_iter().map(|candidate| (candidate.root, candidate.stir)).collect()
    }

    #[test]
    fn a_chain_that_waits_for_an_answer_is_none_until_it_has_one() {
        let (_temp, store) = store();
        let root = store.root();
        assert!(matches!(found(&store)[..], [(of, Stir::Until(_))] if of == root), "whoever made it starts it");
        let caller = store.start(root);
        assert_eq!(found(&store), [(root, Stir::Running)]);
        let question = store.request(caller, None, &[ask("When?")]).unwrap()[0];
        store.end(caller, &Ending::Suspended);
        assert_eq!(found(&store), []);
        store.answer(question, "now").unwrap();
        assert_eq!(found(&store), [(root, Stir::Free)]);
        store.end(store.start(root), &reply("done"));
        assert_eq!(found(&store), []);
    }

    #[test]
    fn a_question_that_expires_is_one_for_its_time() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let expires_at = "2100-01-01T00:00:00Z".parse().unwrap();
        let form = Form { expires_at: Some(expires_at), ..Form::text("When?") };
        let question = store.request(caller, None, &[RequestKind::Ask(form)]).unwrap()[0];
        store.end(caller, &Ending::Suspended);
        assert_eq!(found(&store), [(caller.frame, Stir::Until(expires_at))]);
        store.looked(question, &Seen::Time(Timestamp::now())).unwrap();
        assert_eq!(found(&store), [(caller.frame, Stir::Until(expires_at))], "its time has not come");
        store.looked(question, &Seen::Time(expires_at)).unwrap();
        assert_eq!(found(&store), [(caller.frame, Stir::Free)]);
    }

    #[test]
    fn a_parent_is_none_until_its_child_is_over() {
        let (_temp, store) = store();
        let parent = store.start(store.root());
        let (_, child) = store.request_child(parent, None, &new("child"), "child").unwrap();
        store.end(parent, &Ending::Suspended);
        let caller = store.start(child);
        store.request(caller, None, &[ask("When?")]).unwrap();
        store.end(caller, &Ending::Suspended);
        assert_eq!(found(&store), []);
    }

    #[test]
    fn what_keeps_a_chain_is_named() {
        let (_temp, store) = store();
        let limited = store.root();
        let resets_at = "2100-01-01T00:00:00Z".parse().unwrap();
        store.end(store.start(limited), &Ending::UsageLimit { resets_at, worked: true });
        let caller = store.start(store.root());
        let wait = External::File(PathBuf::from("/p/report"));
        store.request(caller, None, &[RequestKind::Wait(wait.clone())]).unwrap();
        store.end(caller, &Ending::Suspended);
        let judging = store.root();
        store.end(store.start(judging), &reply("SGN_PEND_STARTED"));
        let named =
            [(limited, Stir::Until(resets_at)), (judging, Stir::AgentDecides), (caller.frame, Stir::Outside(wait))];
        assert_eq!(found(&store), named);
    }

    #[test]
    fn a_failed_chain_is_none() {
        let (_temp, store) = store();
        let root = store.root();
        store.end(store.start(root), &Ending::Error("max turns".into()));
        assert_eq!(found(&store), []);
    }
}

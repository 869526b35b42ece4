//! Finds chains that may be able to continue, without reading every chain.

use std::ops::ControlFlow;

use jiff::Timestamp;

use crate::core::chain::check_schedule::{self, ChangedChain, ContinueReason};
use crate::core::chain::frame_state::{FrameState, Wait};
use crate::core::requests::question_form::Form;
use crate::core::requests::request::RequestKind;
use crate::core::waits::conditions::{External, Matching};
use crate::core::waits::wait_progress::WaitProgress;
use crate::store::sql::database::codec::{from_json, id, maybe_json, time};
use crate::store::sql::engine::{Connection, Row, TxResult};

// Each of these queries uses a partial index and repeats its condition word for word. They may select more chains than the
// rule in `core/chain/runnable.rs` allows, but never fewer. The rule decides.

/// Whether an open request `r` still has no result: as in `Tree::is_over`, a child that has finished or no longer exists has
/// ended.
macro_rules! is_awaited {
    () => {
        "(r.child IS NULL OR EXISTS (SELECT 1 FROM frames AS c INDEXED BY unfinished_frames
            WHERE c.id = r.child AND c.status NOT IN ('done', 'failed') AND c.outcome IS NULL))"
    };
}

/// Whether a frame's agent writes a summary next. Rows of other frames are not read for this.
macro_rules! wants_summary {
    () => {
        "frames.id IN (SELECT w.id FROM frames AS w INDEXED BY wanted_summaries WHERE w.wants_summary)"
    };
}

const STIRRING: &str = concat!(
    "SELECT root, state, since, created,
       outcome IS NOT NULL AS has_outcome, (status = 'ready' AND parent IS NULL AND (SELECT c.labels FROM chains AS c WHERE c.root = frames.root) IS NOT NULL)
         AS is_for_any_host
     FROM frames INDEXED BY stirring_frames
     WHERE status IN ('ready', 'running', 'waiting')
     AND (status <> 'waiting' OR ",
    wants_summary!(),
    " OR NOT EXISTS
         (SELECT 1 FROM requests AS r INDEXED BY open_requests WHERE r.frame = frames.id AND r.status = 'open'
          AND NOT r.is_job AND ",
    is_awaited!(),
    " AND NOT (r.is_background AND (frames.waits_for <> 'requests' OR EXISTS
         (SELECT 1 FROM requests AS o INDEXED BY requests_by_frame
          WHERE o.frame = frames.id AND o.status IN ('open', 'resolved', 'expired', 'delivering')
          AND NOT o.is_background AND NOT (o.status = 'open' AND o.is_job))))))
     AND (status <> 'waiting' OR NOT is_group OR NOT EXISTS
         (SELECT 1 FROM frames AS c INDEXED BY frames_by_parent
          WHERE c.parent = frames.id AND c.status NOT IN ('done', 'failed') AND c.outcome IS NULL))
     AND (status <> 'waiting' OR ",
    wants_summary!(),
    " OR waits_for <> 'requests' OR NOT EXISTS
         (SELECT 1 FROM requests AS r INDEXED BY open_waits
          WHERE r.frame = frames.id AND r.kind = 'wait' AND r.status = 'open' AND r.is_job)
      OR EXISTS
         (SELECT 1 FROM requests AS r INDEXED BY requests_by_frame
          WHERE r.frame = frames.id AND r.status IN ('open', 'resolved', 'expired', 'delivering')
          AND NOT (r.status = 'open' AND r.is_job)))
     ORDER BY seq"
);
const WHOLE: &str = r#"[}"]\s*$"#;

/// The open requests of agents that continue once they have a result, where `condition` selects what an index has.
macro_rules! requests {
    ($index:literal, $condition:literal) => {
        concat!(
            "SELECT f.root, r.detail, r.looked FROM requests AS r INDEXED BY ",
            $index,
            " JOIN frames AS f ON f.id = r.frame WHERE f.status IN ('ready', 'running', 'waiting') AND ",
            $condition,
            " ORDER BY r.seq"
        )
    };
}

const OUTSIDE: &str = requests!("open_waits", "r.kind = 'wait' AND r.status = 'open'");
const EXPIRING: &str = requests!("expiring_questions", "r.status = 'open' AND r.expires IS NOT NULL");
const IN_FILES: &str = requests!("questions_in_files", "r.status = 'open' AND r.answer_file IS NOT NULL");
// An answer in a file is not visible in the database.
const POSTED: &str = requests!("posted_questions", "r.status = 'open' AND r.is_posted");

pub(crate) fn candidates(connection: &Connection, now: Timestamp) -> TxResult<Vec<ChangedChain>> {
    for sql in [STIRRING, OUTSIDE, POSTED, EXPIRING, IN_FILES] {
        connection.send_ahead(sql, [])?;
    }
    let mut candidates = stirring(connection, now)?;
    candidates.extend(requests(connection, OUTSIDE, |kind| match kind {
        RequestKind::Wait(wait) => Some(ContinueReason::Outside(wait)),
        _ => None,
    })?);
    candidates.extend(requests(connection, POSTED, |kind| until_readable(&kind).into_iter().chain(in_file(kind)))?);
    candidates.extend(requests(connection, EXPIRING, |kind| match kind {
        RequestKind::Ask(Form { expires_at, .. }) => expires_at.map(ContinueReason::Until),
        _ => None,
    })?);
    candidates.extend(requests(connection, IN_FILES, in_file)?);
    Ok(candidates)
}

fn stirring(connection: &Connection, now: Timestamp) -> TxResult<Vec<ChangedChain>> {
    let read = |row: &Row<'_>| {
        let (since, created) = (time(row, "since")?, time(row, "created")?);
        // Damage is reported when the chain itself is read, and does not affect the others.
        let Ok(state) = from_json(row, "state") else {
            return Ok(Some(ChangedChain {
                root: id(row, "root")?,
                reason: ContinueReason::Free,
                progress: WaitProgress::default(),
            }));
        };
        let reason = match state {
            FrameState::Running { .. } => ContinueReason::Running,
            FrameState::Waiting { wait: Wait::AgentDecides } => ContinueReason::AgentDecides,
            FrameState::Waiting { wait } => {
                wait.paused_until(since, now).map_or(ContinueReason::Free, ContinueReason::Until)
            }
            FrameState::Ready
                if (since == created || row.get("has_outcome")?) && !row.get::<_, bool>("is_for_any_host")? =>
            {
                check_schedule::left_to_its_maker(since, now).map_or(ContinueReason::Free, ContinueReason::Until)
            }
            FrameState::Ready => ContinueReason::Free,
            FrameState::Done | FrameState::Failed { .. } | FrameState::Cancelled | FrameState::Paused { .. } => {
                return Ok(None);
            }
        };
        Ok(Some(ChangedChain { root: id(row, "root")?, reason, progress: WaitProgress::default() }))
    };
    Ok(connection.read_all(STIRRING, [], read)?.into_iter().flatten().collect())
}

/// The chains with the requests that `sql` finds, if they have a reason to continue.
fn requests<I: IntoIterator<Item = ContinueReason>>(
    connection: &Connection,
    sql: &str,
    reasons: impl Fn(RequestKind) -> I,
) -> TxResult<Vec<ChangedChain>> {
    let mut found = Vec::new();
    connection.each(sql, [], |row| {
        let root = id(row, "root")?;
        match (from_json(row, "detail"), maybe_json::<WaitProgress>(row, "looked")) {
            (Ok(detail), Ok(looked)) => {
                let progress = looked.unwrap_or_default();
                let reasons = reasons(detail).into_iter();
                found.extend(reasons.map(|reason| ChangedChain { root, reason, progress: progress.clone() }));
            }
            _ => found.push(ChangedChain { root, reason: ContinueReason::Free, progress: WaitProgress::default() }),
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

fn in_file(kind: RequestKind) -> Option<ContinueReason> {
    match kind {
        RequestKind::Ask(form) => Some(ContinueReason::InFile { form: Box::new(form), changed: None }),
        _ => None,
    }
}

/// A posted question that cannot be read is read again until it can be read, even if its file is complete but invalid. If
/// the file is incomplete, the chain is checked again when the file changes.
fn until_readable(kind: &RequestKind) -> Option<ContinueReason> {
    let RequestKind::Ask(Form { posted: Some(posted), .. }) = kind else { return None };
    let file = posted.trouble.as_ref().and_then(|_| posted.pending())?;
    Some(ContinueReason::Outside(External::Matching(Matching { file, pattern: WHOLE.to_owned(), within: None })))
}

#[cfg(test)]
mod tests;

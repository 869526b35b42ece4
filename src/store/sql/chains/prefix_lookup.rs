//! Resolves a shortened id.

use crate::core::chain::frame::{Frame, Task};
use crate::core::id::{FrameId, IdPrefix};
use crate::core::requests::request::RequestKind;
use crate::core::text::escape::shortened;
use crate::store::error::{Candidate, StoreError};
use crate::store::records::{Scope, Target};
use crate::store::sql::database::codec::{Id, from_json, id};
use crate::store::sql::engine::{Connection, TxResult, Values};
use crate::store::sql::requests::attach;
use crate::store::sql::tables::below::below;
use crate::store::sql::tables::frames;

/// How many candidates are named to a person.
const MOST: usize = 10;

// Hexadecimal digits and the hyphen sort before `g`: the ranges contain exactly the ids with the prefix, and indexes find
// them. A frame with many sessions must not crowd out others, hence the grouping. It is one statement because a poll spends
// most of its time on preparing statements.
const MATCHES: &str = "SELECT * FROM (SELECT 0 AS is_request, id AS matched, id FROM frames
       WHERE id >= ?1 AND id < ?1 || 'g' ORDER BY id LIMIT 11) AS m1
     UNION ALL SELECT * FROM (SELECT 0, min(session), frame FROM attempts
       WHERE session >= ?1 AND session < ?1 || 'g' GROUP BY frame ORDER BY 2 LIMIT 11) AS m2
     UNION ALL SELECT * FROM (SELECT 1, id, id FROM requests
       WHERE id >= ?1 AND id < ?1 || 'g' ORDER BY id LIMIT 11) AS m3";

/// Like [`MATCHES`], for a frame and all frames below it.
const MATCHES_BELOW: &str = below!(
    "SELECT * FROM (SELECT 0 AS is_request, id AS matched, id FROM below
       WHERE id >= ?2 AND id < ?2 || 'g' ORDER BY id LIMIT 11) AS m1
     UNION ALL SELECT * FROM (SELECT 0, min(a.session), a.frame FROM below CROSS JOIN attempts AS a ON a.frame = below.id
       WHERE a.session >= ?2 AND a.session < ?2 || 'g' GROUP BY a.frame ORDER BY 2 LIMIT 11) AS m2
     UNION ALL SELECT * FROM (SELECT 1, r.id, r.id FROM below CROSS JOIN requests AS r ON r.frame = below.id
       WHERE r.id >= ?2 AND r.id < ?2 || 'g' ORDER BY 2 LIMIT 11) AS m3"
);

/// Like [`MATCHES`], among questions.
const QUESTIONS: &str = "SELECT 1 AS is_request, id AS matched, id FROM requests
     WHERE id >= ?1 AND id < ?1 || 'g' AND kind = 'ask' ORDER BY id LIMIT 11";

pub(crate) fn lookup(connection: &Connection, scope: Scope, prefix: &IdPrefix) -> TxResult<Target> {
    let text = prefix.as_str();
    match scope {
        Scope::All => only(connection, prefix, matches(connection, MATCHES, [text])?),
        Scope::Below(top) => only(connection, prefix, matches(connection, MATCHES_BELOW, (Id(top), text))?),
        Scope::Agent(agent) => {
            let found = matches(connection, MATCHES_BELOW, (Id(agent), text))?;
            match text.parse::<FrameId>() {
                Ok(chain) if found.is_empty() && attach::has_started(connection, agent, chain)? => {
                    Ok(Target::Frame(chain))
                }
                _ => only(connection, prefix, found),
            }
        }
        Scope::QuestionsFirst => match matches(connection, QUESTIONS, [text])? {
            none if none.is_empty() => only(connection, prefix, matches(connection, MATCHES, [text])?),
            questions => only(connection, prefix, questions),
        },
    }
}

/// The only match.
fn only(connection: &Connection, prefix: &IdPrefix, mut found: Vec<(Target, String)>) -> TxResult<Target> {
    let Some((first, id)) = found.first().cloned() else {
        return Err(StoreError::Unknown(prefix.as_str().to_owned()).into());
    };
    if id == prefix.as_str() || found.iter().all(|(target, _)| *target == first) {
        return Ok(first);
    }
    let mut seen: Vec<Target> = Vec::new();
    found.retain(|(target, _)| {
        let new = !seen.contains(target);
        seen.push(*target);
        new
    });
    found.truncate(MOST);
    let short = |id: &str| id.chars().take(8).collect::<String>();
    let mut shorts: Vec<_> = found.iter().map(|(_, id)| short(id)).collect();
    shorts.sort_unstable();
    shorts.dedup();
    let suffice = shorts.len() == found.len();
    let candidates = found.iter().map(|(target, id)| {
        let (kind, title) = described(connection, *target, id)?;
        let id = if suffice { short(id) } else { id.clone() };
        Ok(Candidate { id, kind, title })
    });
    let candidates = candidates.collect::<TxResult<_>>()?;
    Err(StoreError::Ambiguous { prefix: prefix.as_str().to_owned(), candidates }.into())
}

fn described(connection: &Connection, target: Target, matched: &str) -> TxResult<(&'static str, String)> {
    match target {
        Target::Frame(frame) => {
            let frame = frames::existing(connection, frame)?;
            let kind = match frame {
                _ if frame.id.to_string() != matched => "a session of the agent",
                Frame { parent: None, .. } => "the chain",
                Frame { task: Task::Group(_), .. } => "the group",
                _ => "the agent",
            };
            Ok((kind, shortened(&frame.task.title())))
        }
        Target::Request(request) => Ok(
            match connection
                .read_one("SELECT detail FROM requests WHERE id = ?1", [Id(request)], |row| from_json(row, "detail"))?
            {
                RequestKind::Ask(form) => ("the question", shortened(&form.question)),
                kind @ (RequestKind::Permission { .. } | RequestKind::Plan(_)) => ("the approval of", kind.command()),
                kind => ("the request", kind.command()),
            },
        ),
    }
}

/// The matches of a prefix, each with the matching id.
fn matches(connection: &Connection, sql: &str, parameters: impl Values) -> TxResult<Vec<(Target, String)>> {
    connection.read_all(sql, parameters, |row| {
        let target =
            if row.get("is_request")? { Target::Request(id(row, "id")?) } else { Target::Frame(id(row, "id")?) };
        Ok((target, row.get("matched")?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::attempt::ending::Ending;
    use crate::core::id::SessionId;
    use crate::store::records::{NewAttempt, NewChain};
    use crate::store::testing::{ask, attempt, in_file, new, reply, store};

    fn prefix(text: &str) -> IdPrefix {
        text.parse().unwrap()
    }

    fn session(text: &str) -> SessionId {
        text.parse().map(SessionId).unwrap()
    }

    #[test]
    fn a_frame_goes_by_its_id_and_by_that_of_each_of_its_sessions() {
        let (_temp, store) = store();
        let frame = store.root();
        let first = NewAttempt { session: frame.into(), ..attempt(vec![]) };
        store.begin(frame, &first).unwrap();
        store.end(crate::store::Caller { frame, attempt: first.id }, &reply("SGN_PEND_STARTED"));
        store.start(frame);
        let second = store.attempts(frame).unwrap()[1].session;
        for id in [frame.to_string(), frame.short(), second.to_string(), second.short()] {
            assert_eq!(store.lookup(Scope::All, &prefix(&id)).unwrap(), Target::Frame(frame), "{id}");
        }
    }

    #[test]
    fn a_request_goes_by_its_id() {
        let (_temp, store) = store();
        let (_, question) = store.asking("When?");
        assert_eq!(store.lookup(Scope::All, &prefix(&question.short())).unwrap(), Target::Request(question));
    }

    #[test]
    fn what_nothing_has_is_unknown() {
        let (_temp, store) = store();
        let error = store.lookup(Scope::All, &prefix("FFFF1234")).unwrap_err();
        assert!(matches!(&error, StoreError::Unknown(prefix) if prefix == "ffff1234"), "{error}");
    }

    #[test]
    fn several_candidates_are_named() {
        let (_temp, store) = store();
        let ids: Vec<_> = (0..12).map(|n| format!("abcd{n:04}-0000-4000-8000-000000000000")).collect();
        for id in &ids {
            store.create_root(NewChain::Adopted(&new("theirs"), session(id))).unwrap();
        }
        let Err(StoreError::Ambiguous { candidates, .. }) = store.lookup(Scope::All, &prefix("abcd")) else {
            panic!("twelve ids begin like this");
        };
        let expected = ids[..10].iter().map(|id| format!("{} (the chain theirs)", &id[..8]));
        assert_eq!(candidates.iter().map(Candidate::to_string).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        assert!(matches!(store.lookup(Scope::All, &prefix("abcd0003")), Ok(Target::Frame(_))));
    }

    #[test]
    fn candidates_that_begin_alike_are_named_in_full() {
        let (_temp, store) = store();
        let ids = ["abcd0000-0000-4000-8000-000000000000", "abcd0000-0000-4000-8000-000000000001"];
        for id in ids {
            store.create_root(NewChain::Adopted(&new("theirs"), session(id))).unwrap();
        }
        let error = store.lookup(Scope::All, &prefix("abcd0000")).unwrap_err();
        let named = ids.map(|id| format!("{id} (the chain theirs)")).join(", ");
        assert_eq!(error.to_string(), format!("several ids begin with abcd0000: {named}"));
    }

    #[test]
    fn below_a_frame_nothing_else_exists() {
        let (_temp, store) = store();
        let root = store.start(store.root());
        let (_, child) = store.request_child(root, None, &new("child"), "child").unwrap();
        store.end(root, &Ending::Suspended);
        let caller = store.start(child);
        let (_, leaf) = store.request_child(caller, None, &new("leaf"), "leaf").unwrap();
        store.end(caller, &Ending::Suspended);
        let below = store.start(leaf);
        let question = store.request(below, None, &[ask("When?")]).unwrap()[0];
        let (other, foreign) = store.asking("Where?");

        let session = |frame| store.attempts(frame).unwrap()[0].session;
        let found = |id: String| store.lookup(Scope::Below(child), &prefix(&id)).ok();
        for (id, expected) in [
            (child.to_string(), Target::Frame(child)),
            (leaf.short(), Target::Frame(leaf)),
            (session(leaf).to_string(), Target::Frame(leaf)),
            (question.short(), Target::Request(question)),
        ] {
            assert_eq!(found(id.clone()), Some(expected), "{id}");
        }
        for id in [
            root.frame.to_string(),
            session(root.frame).short(),
            other.to_string(),
            foreign.to_string(),
            foreign.short(),
        ] {
            let error = store.lookup(Scope::Below(child), &prefix(&id)).unwrap_err();
            assert!(matches!(&error, StoreError::Unknown(unknown) if *unknown == id), "{error}");
        }
    }

    #[test]
    fn where_a_question_is_meant_nothing_else_is() {
        let (_temp, store) = store();
        let (frame, question) = store.asking("When?");
        let twin = format!("{}-0000-4000-8000-00000000000f", question.short());
        store.create_root(NewChain::Adopted(&new("theirs"), session(&twin))).unwrap();
        assert!(store.lookup(Scope::All, &prefix(&question.short())).is_err());
        let meant = |id: &str| store.lookup(Scope::QuestionsFirst, &prefix(id)).unwrap();
        assert_eq!(meant(&question.short()), Target::Request(question));
        assert_eq!(meant(&frame.to_string()), Target::Frame(frame));
    }

    #[test]
    fn a_full_id_wins() {
        let (_temp, store) = store();
        let (frame, other) = (store.root(), store.root());
        let odd = NewAttempt { session: frame.into(), ..attempt(vec![]) };
        store.begin(other, &odd).unwrap();
        assert_eq!(store.lookup(Scope::All, &prefix(&frame.to_string())).unwrap(), Target::Frame(frame));
    }

    #[test]
    fn only_the_index_is_read() {
        let (_temp, store) = in_file();
        let explained = |sql: &str, parameters: &[&str]| -> Vec<String> {
            let mut statement = store.sqlite().prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let steps = statement.query_map(rusqlite::params_from_iter(parameters), |row| row.get("detail")).unwrap();
            steps.map(|step| step.unwrap()).collect()
        };
        for (sql, parameters) in [(MATCHES_BELOW, ["f", "abcd"].as_slice()), (QUESTIONS, &["abcd"])] {
            let plan = explained(sql, parameters);
            assert!(
                !plan.iter().any(|step| ["SCAN frames", "SCAN a", "SCAN r", "SCAN child"].contains(&step.as_str())),
                "{plan:?}"
            );
        }
        let plan = explained(MATCHES, &["abcd"]);
        let reads = |start: &str, table: &str| plan.iter().any(|step| step.starts_with(&format!("{start} {table}")));
        for table in ["frames", "attempts", "requests"] {
            assert!(reads("SEARCH", table) && !reads("SCAN", table), "{plan:?}");
        }
    }
}

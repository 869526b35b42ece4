//! Messages to agents from people and agents above, and new instructions for finished agents.

use crate::core::agent::situation::Situation;
use crate::core::chain::frame::Frame;
use crate::core::chain::frame_state::FrameEvent;
use crate::core::events::log_entry::LogEntry;
use crate::core::id::{AttemptId, FrameId, MessageId};
use crate::core::steering::message::{Message, MessageSender, in_words};
use crate::store::error::StoreError;
use crate::store::records::{Caller, Telling};
use crate::store::sql::database::codec::{self, At, Id, id, maybe_id, maybe_json, time};
use crate::store::sql::engine::{Connection, Row, TxResult};
use crate::store::sql::tables::{events, frames, requests};

pub(crate) fn tell(
    connection: &Connection,
    frame: FrameId,
    how: Telling,
    text: &str,
    sender: &MessageSender,
) -> TxResult<MessageId> {
    let (now, before) = (codec::now(), frames::existing(connection, frame)?);
    match how {
        Telling::Message if before.state.is_over() => return Err(StoreError::IsOver(frame).into()),
        // It must continue in order to read the message.
        Telling::Message => requests::revoke_handoffs(connection, frame)?,
        Telling::Instruction => return instruct(connection, frame, text, sender),
    }
    insert(connection, now, frame, text, sender, false)
}

pub(crate) fn give_messages(connection: &Connection, caller: Caller, longest: usize) -> TxResult<Vec<Message>> {
    requests::check(connection, caller)?;
    let given = Some(pending(connection, caller.frame)?)
        .filter(|given| in_words(given).is_some_and(|text| text.len() <= longest))
        .unwrap_or_default();
    let ids: Vec<_> = given.iter().map(|message| message.id).collect();
    give(connection, caller.frame, caller.attempt, &ids)?;
    Ok(given)
}

/// Records an instruction for an agent, which must have ended.
pub(crate) fn instruct(
    connection: &Connection,
    frame: FrameId,
    text: &str,
    sender: &MessageSender,
) -> TxResult<MessageId> {
    let (now, before) = (codec::now(), frames::existing(connection, frame)?);
    resume(connection, now, &before)?;
    // It begins a new turn, and what skills allow applies to theirs.
    let situation = Situation { rules: Vec::new(), ..before.situation.clone() };
    if situation != before.situation {
        let situation = codec::json(&situation, &[])?;
        connection.run("UPDATE frames SET situation = ?2 WHERE id = ?1", (Id(frame), situation))?;
    }
    insert(connection, now, frame, text, sender, true)
}

/// Makes a finished agent continue.
fn resume(connection: &Connection, now: At, before: &Frame) -> TxResult<()> {
    let state = frames::advance(connection, before, FrameEvent::Instruct, now.0)?;
    connection.run(
        "UPDATE frames SET outcome = coalesce(outcome, ?2), afresh = CASE WHEN wants_summary THEN NULL ELSE afresh END
             WHERE id = ?1",
        (Id(before.id), codec::json(&before.state, &[])?),
    )?;
    events::append(connection, now, before.id, &LogEntry::Instructed { from: before.state.clone(), to: state })
}

fn insert(
    connection: &Connection,
    now: At,
    frame: FrameId,
    text: &str,
    sender: &MessageSender,
    instructs: bool,
) -> TxResult<MessageId> {
    let message = MessageId::random();
    connection.run(
        "INSERT INTO messages (id, frame, made, instructs, origin, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        (Id(message), Id(frame), now, instructs, codec::json(sender, &[])?, text),
    )?;
    events::append(connection, now, frame, &LogEntry::Message { message, by: sender.by })?;
    Ok(message)
}

/// The messages to an agent, in order.
pub(super) fn all(connection: &Connection, frame: FrameId) -> TxResult<Vec<Message>> {
    connection.read_all("SELECT * FROM messages WHERE frame = ?1 ORDER BY seq", [Id(frame)], from_row)
}

/// The messages that a frame's agent has not been given.
pub(crate) fn pending(connection: &Connection, frame: FrameId) -> TxResult<Vec<Message>> {
    let sql = "SELECT * FROM messages WHERE frame = ?1 AND delivered_in IS NULL ORDER BY seq";
    connection.read_all(sql, [Id(frame)], from_row)
}

/// The messages that an attempt was given.
pub(crate) fn given_in(connection: &Connection, attempt: AttemptId) -> TxResult<Vec<Message>> {
    let sql = "SELECT * FROM messages WHERE delivered_in = ?1 ORDER BY seq";
    connection.read_all(sql, [Id(attempt)], from_row)
}

/// Records that an attempt is given these messages.
pub(crate) fn give(connection: &Connection, frame: FrameId, attempt: AttemptId, given: &[MessageId]) -> TxResult<()> {
    for message in given {
        connection.run(
            "UPDATE messages SET delivered_in = ?3 WHERE id = ?1 AND frame = ?2",
            (Id(*message), Id(frame), Id(attempt)),
        )?;
    }
    Ok(())
}

/// Makes messages of an attempt deliverable again: all of them, or those that its agent has not seen.
pub(crate) fn give_back(connection: &Connection, attempt: AttemptId, unseen: Option<&[MessageId]>) -> TxResult<()> {
    match unseen {
        None => {
            let sql = "UPDATE messages SET delivered_in = NULL WHERE delivered_in = ?1";
            connection.run(sql, [Id(attempt)])?;
        }
        Some(unseen) => {
            for message in unseen {
                let sql = "UPDATE messages SET delivered_in = NULL WHERE id = ?2 AND delivered_in = ?1";
                connection.run(sql, (Id(attempt), Id(*message)))?;
            }
        }
    }
    Ok(())
}

/// Records an agent's reply to its last instruction. Returns whether it has had one.
pub(crate) fn reply(connection: &Connection, frame: FrameId, reply: &str) -> TxResult<bool> {
    let sql = "UPDATE messages SET reply = ?2
               WHERE seq = (SELECT max(seq) FROM messages WHERE frame = ?1 AND instructs = 1)";
    Ok(connection.change(sql, (Id(frame), reply))? > 0)
}

pub(crate) fn from_row(row: &Row<'_>) -> rusqlite::Result<Message> {
    Ok(Message {
        id: id(row, "id")?,
        made: time(row, "made")?,
        delivered_in: maybe_id(row, "delivered_in")?,
        instructs: row.get("instructs")?,
        sender: maybe_json(row, "origin")?,
        text: row.get("text")?,
        reply: row.get("reply")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::attempt::decision::decide;
    use crate::core::attempt::ending::Ending;
    use crate::core::attempt::facts::Facts;
    use crate::core::steering::origin::Origin;
    use crate::core::steering::stop_order::By;
    use crate::store::records::AttemptEnd;
    use crate::store::testing::{attempt_end, refused, reply, store};

    #[test]
    fn an_instruction_begins_a_turn_without_the_rules_of_skills() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        store.end(caller, &reply("done"));
        store.execute("UPDATE frames SET situation = ?1", [r#"{"mode":"plan","rules":["Bash(touch:*)"]}"#]);
        let sender = MessageSender { by: By::Person, origin: Origin::default() };
        store.tell(caller.frame, Telling::Instruction, "Go on.", &sender).unwrap();
        let situation = store.frame(caller.frame).unwrap().unwrap().situation;
        assert_eq!((situation.mode.as_deref(), situation.rules), (Some("plan"), Vec::new()));
    }

    #[test]
    fn what_an_agent_has_not_seen_is_given_again() {
        let (_temp, store) = store();
        let sender = MessageSender { by: By::Person, origin: Origin::default() };
        let told = |caller: Caller| {
            let tell = |text| store.tell(caller.frame, Telling::Message, text, &sender).unwrap();
            let told = (tell("first"), tell("second"));
            assert_eq!(store.give_messages(caller, 0).unwrap(), []);
            assert_eq!(store.give_messages(caller, usize::MAX).unwrap().len(), 2);
            assert_eq!(store.give_messages(caller, usize::MAX).unwrap(), [], "they are given once");
            told
        };
        let pending = |caller: Caller| {
            let messages = store.steering(caller.frame).unwrap().messages;
            let pending = messages.into_iter().filter(|message| message.delivered_in.is_none());
            pending.map(|message| message.id).collect::<Vec<_>>()
        };
        let ended = |caller, ending: Ending, unseen: &[MessageId]| {
            let decision = decide(&Facts::from_ending(ending));
            let end = AttemptEnd { unseen_messages: unseen.to_vec(), ..attempt_end(caller, &decision) };
            store.end_attempt(&end).unwrap();
        };
        let kept = store.start(store.root());
        let (_, second) = told(kept);
        ended(kept, reply("SGN_PEND_STARTED"), &[second]);
        assert_eq!(pending(kept), [second]);

        let discarded = store.start(store.root());
        let (first, second) = told(discarded);
        ended(discarded, refused("not logged in"), &[]);
        assert_eq!(pending(discarded), [first, second]);
    }
}

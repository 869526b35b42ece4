//! Groups: frames without an agent, created together with their members, which end when all members have ended.

use crate::core::agent::launch::Launch;
use crate::core::chain::frame::{Frame, Task};
use crate::core::chain::frame_state::{FrameEvent, FrameState};
use crate::core::chain::group::{self, GroupMember};
use crate::core::events::log_entry::LogEntry;
use crate::core::id::FrameId;
use crate::store::records::Replies;
use crate::store::sql::database::codec::{At, Id, from_json, id};
use crate::store::sql::engine::{Connection, Row, TxResult};
use crate::store::sql::tables::{events, frames, notifications};

pub(crate) fn replies(connection: &Connection, frame: FrameId) -> TxResult<Replies> {
    let sql = "SELECT r.reply, f.task FROM frames AS f LEFT JOIN replies AS r ON r.frame = f.id WHERE f.id = ?1";
    let found = |row: &Row<'_>| Ok((row.get("reply")?, from_json::<Task>(row, "task")?));
    let Some((reply, task)) = connection.read_first(sql, [Id(frame)], found)? else {
        return Ok(Replies::default());
    };
    Ok(Replies { reply, members: members(connection, frame, &task)? })
}

/// Ends a group whose members have all ended, and joins their replies into one text. Returns its new state, or `None` if
/// there is nothing to do: another process may have been first.
pub(crate) fn end(connection: &Connection, now: At, group: FrameId) -> TxResult<Option<FrameState>> {
    let before = frames::existing(connection, group)?;
    let members = members(connection, group, &before.task)?;
    let Some(ended) = group::ended(&before.state, &members).filter(|_| before.task.is_group()) else {
        return Ok(None);
    };
    let from = before.state.clone();
    let begun = frames::advance(connection, &before, FrameEvent::Begin, now.0)?;
    let begun = Frame { state: begun, ..before };
    let to = frames::advance(connection, &begun, FrameEvent::End(ended), now.0)?;
    frames::set_reply(connection, group, &group::text(&members))?;
    let entry = LogEntry::Ended {
        attempt: None,
        outcome: "group".to_owned(),
        kept: None,
        cost_usd: None,
        from,
        to: to.clone(),
    };
    events::append(connection, now, group, &entry)?;
    notifications::note_state(connection, now, &begun, &to, false)?;
    Ok(Some(to))
}

/// The members of a group, in order; none if the frame is not a group.
pub(crate) fn members(connection: &Connection, group: FrameId, task: &Task) -> TxResult<Vec<GroupMember>> {
    let Task::Group(tasks) = task else { return Ok(Vec::new()) };
    let sql =
        "SELECT f.id, f.title, coalesce(f.outcome, f.state) AS state, f.launch, r.reply FROM frames AS f LEFT JOIN replies AS r ON r.frame = f.id
         WHERE f.parent = ?1 ORDER BY f.seq";
    let mut tasks = tasks.iter();
    connection.read_all(sql, [Id(group)], |row| {
        let task = tasks.next().cloned().map_or_else(|| row.get("title"), Ok)?;
        let Launch { worktree, .. } = from_json(row, "launch")?;
        Ok(GroupMember {
            id: id(row, "id")?,
            task,
            state: from_json(row, "state")?,
            reply: row.get("reply")?,
            worktree,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::attempt::ending::Ending;
    use crate::core::chain::frame_state::Wait;
    use crate::core::chain::limits::{LimitReached, Limits};
    use crate::core::requests::request::RequestResult;
    use crate::store::error::StoreError;
    use crate::store::handle::Store;
    use crate::store::testing::{group, new, refused, reply, store};

    fn ids(store: &Store, group: FrameId) -> Vec<FrameId> {
        store.replies(group).unwrap().members.into_iter().map(|member| member.id).collect()
    }

    #[test]
    fn a_group_is_no_level_and_no_agent() {
        let (_temp, store) = store();
        let mut root = new("root");
        root.limits = Limits { max_depth: 2, max_agents: 4, ..Limits::default() };
        let caller = store.start(store.create_root(&root).unwrap());
        let too_many = store.request_child(caller, None, &group(&["a", "b", "c", "d"]), "several").unwrap_err();
        assert!(matches!(too_many, StoreError::Limit(LimitReached::Agents(4))), "{too_many}");
        let (_, three) = store.request_child(caller, None, &group(&["a", "b", "c"]), "several").unwrap();
        let depths: Vec<_> = ids(&store, three).iter().map(|id| store.frame(*id).unwrap().unwrap().depth).collect();
        assert_eq!(depths, [2, 2, 2]);
        store.end(caller, &Ending::Suspended);
        let deep = store.request_child(store.start(ids(&store, three)[0]), None, &new("d"), "d").unwrap_err();
        assert!(matches!(deep, StoreError::Limit(LimitReached::Depth(2))), "{deep}");
        assert_eq!(store.roots()[0].frames, 4);
    }

    #[test]
    fn a_group_at_the_top_begins_at_depth_one() {
        let (_temp, store) = store();
        let id = store.create_root(&group(&["a", "b"])).unwrap();
        let members = ids(&store, id);
        let member = store.frame(members[1]).unwrap().unwrap();
        assert_eq!((member.depth, member.root, member.parent), (1, id, Some(id)));
        let tree = store.tree(id).unwrap();
        assert_eq!((tree.children(id), tree.groups_to_end().len()), (members.as_slice(), 0));
        assert_eq!(store.roots()[0].title, "a b");
        let mut many = group(&["a", "b"]);
        many.members[0].limits.max_agents = 1;
        assert!(matches!(store.create_root(&many), Err(StoreError::Limit(_))));
    }

    #[test]
    fn a_group_ends_with_its_last_member_and_once() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let (request, id) = store.request_child(caller, Some("toolu_1"), &group(&["a", "b"]), "several").unwrap();
        store.end(caller, &Ending::Suspended);
        let members = ids(&store, id);
        store.end(store.start(members[0]), &reply("A\n"));
        assert!(!store.end_group(id).unwrap());
        assert_eq!(store.result_of(request).unwrap(), None);
        store.end(store.start(members[1]), &reply("B"));
        assert_eq!(store.tree(caller.frame).unwrap().groups_to_end(), [id]);
        assert_eq!((store.end_group(id).unwrap(), store.end_group(id).unwrap()), (true, false));
        let text = group::text(&store.replies(id).unwrap().members);
        assert_eq!(store.result_of(request).unwrap(), Some(RequestResult::Text(text.clone())));
        assert!(text.contains("a (") && text.ends_with("\nB"), "{text}");
        assert!(!store.end_group(caller.frame).unwrap(), "it is no group");
    }

    #[test]
    fn a_group_that_failed_is_tried_again_with_the_members_that_failed() {
        let (_temp, store) = store();
        let id = store.create_root(&group(&["a", "b"])).unwrap();
        let members = ids(&store, id);
        store.end(store.start(members[0]), &reply("A"));
        store.end(store.start(members[1]), &refused("not logged in"));
        assert!(store.end_group(id).unwrap());
        assert_eq!(store.frame(id).unwrap().unwrap().state.name(), "failed");
        assert!(store.replies(id).unwrap().reply.unwrap().ends_with("failed\nnot logged in"));
        assert_eq!(store.try_again(id).unwrap(), FrameState::Waiting { wait: Wait::Requests });
        let states: Vec<_> = store.replies(id).unwrap().members.iter().map(|member| member.state.name()).collect();
        assert_eq!(states, ["done", "ready"]);
        store.end(store.start(members[1]), &reply("B"));
        assert!(store.end_group(id).unwrap());
        assert_eq!(store.frame(id).unwrap().unwrap().state, FrameState::Done);
        assert!(store.replies(id).unwrap().reply.unwrap().ends_with("done\nB"));
    }

    #[test]
    fn a_group_that_is_withdrawn_takes_its_members_along() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let (_, id) = store.request_child(caller, None, &group(&["a", "b"]), "several").unwrap();
        store.end(caller, &refused("not logged in"));
        assert!(store.frame(id).unwrap().is_none());
        assert_eq!(store.tree(caller.frame).unwrap().leaves_up().len(), 1);
    }
}

//! Groups: several agents that one command asked for. They run at the same time, and their replies are delivered as one
//! text.

use crate::core::agent::child_worktree::{self, Worktree};
use crate::core::chain::frame_state::{Ended, Failure, FailureKind, FrameState};
use crate::core::chain::tree::{Node, Tree};
use crate::core::id::FrameId;
use crate::core::text::fence::is_line_break;

/// One agent of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMember {
    pub id: FrameId,
    /// Its task, as the command named it, on one line.
    pub task: String,
    /// Its current state.
    pub state: FrameState,
    pub reply: Option<String>,
    pub worktree: Option<Worktree>,
}

/// How a group in `state` ends; `None` if it has ended, or one of its members has not.
///
/// It is done when all members are done. A failed member does not stop the others: the group fails when all have ended.
pub(crate) fn ended(state: &FrameState, members: &[GroupMember]) -> Option<Ended> {
    if !state.is_pending() || !members.iter().all(|member| member.state.is_over()) {
        return None;
    }
    let failed: Vec<String> =
        members.iter().filter(|member| member.failure().is_some()).map(GroupMember::name).collect();
    if failed.is_empty() {
        return Some(Ended::Done);
    }
    let stopped = members.iter().filter(|member| member.state.was_stopped()).count();
    let kind = if stopped == failed.len() { FailureKind::Stopped } else { FailureKind::Error };
    let message = format!("{} of {} agents failed: {}", failed.len(), members.len(), failed.join(", "));
    Some(Ended::Fail(Failure { kind, message }))
}

/// The replies of all members, or why they failed, each exact to the byte between a heading and an empty line.
///
/// If a reply looks like a heading, the headings have one `#` more than any line of a reply, and the first line says
/// so: a counterfeit can then be distinguished from this program's words.
pub(crate) fn text(members: &[GroupMember]) -> String {
    let all = members.len();
    let failed = members.iter().filter(|member| member.failure().is_some()).count();
    let marks = marks(members);
    let outcome = if failed == 0 { "all done".to_owned() } else { format!("{} done, {failed} failed", all - failed) };
    // The others have been joined.
    let agents = if all == 1 { "agent" } else { "agents" };
    let first = format!(
        "{all} {agents}: {outcome}. Each reply follows a line that begins with `{marks} N of {all}: `; \
         no reply has such a line."
    );
    let sections = members.iter().enumerate().map(|(at, member)| {
        let outcome = if member.failure().is_some() { "failed" } else { "done" };
        format!("{marks} {} of {all}: {}: {outcome}\n{}", at + 1, member.name(), member.result())
    });
    std::iter::once(first).chain(sections).collect::<Vec<_>>().join("\n\n")
}

impl GroupMember {
    /// Why it failed, if it did.
    pub(crate) fn failure(&self) -> Option<&Failure> {
        match &self.state {
            FrameState::Failed { failure } => Some(failure),
            _ => None,
        }
    }

    fn name(&self) -> String {
        format!("{} ({})", self.task, self.id.short())
    }

    fn result(&self) -> String {
        // A stopped member reports what it has done so far.
        let reply = self.reply.as_deref();
        let said = reply.or(self.failure().map(|failure| failure.message.as_str())).unwrap_or_default();
        child_worktree::with_place(said.to_owned(), self.worktree.as_ref())
    }
}

impl Tree {
    /// The groups whose members have all ended, and which have not ended themselves.
    pub(crate) fn groups_to_end(&self) -> Vec<FrameId> {
        let ends = |node: &&Node| {
            node.is_group && node.state.is_pending() && self.is_awaited(node) && !self.has_open_requests(node)
        };
        self.leaves_up().into_iter().filter(ends).map(|node| node.id).collect()
    }

    /// The members of a group that are retried with it.
    pub(crate) fn failed_members(&self, group: &Node) -> impl Iterator<Item = &Node> {
        let members = self.children(group.id).iter().filter_map(|member| self.get(*member));
        members.filter(|member| matches!(member.state, FrameState::Failed { .. }) && !member.state.was_stopped())
    }

    /// The unfinished members of groups, each with its group.
    pub(crate) fn open_members_of_groups(&self) -> impl Iterator<Item = (FrameId, FrameId)> {
        let groups = self.all().filter(|node| node.is_group);
        groups.flat_map(|group| {
            let members = self.children(group.id).iter().filter_map(|member| self.get(*member));
            members.filter(|member| !member.is_over()).map(|member| (member.id, group.id))
        })
    }
}

/// The beginning of headings: two `#`, or as many as are needed so that no line of a reply begins the same way.
fn marks(members: &[GroupMember]) -> String {
    let results = members.iter().map(GroupMember::result).collect::<Vec<_>>();
    let longest = results.iter().flat_map(|said| said.split(is_line_break)).filter_map(counterfeit).max();
    "#".repeat(longest.map_or(2, |longest| longest + 1))
}

/// The number of `#` on a line that could be mistaken for a heading.
fn counterfeit(line: &str) -> Option<usize> {
    let line = line.trim_start();
    let rest = line.trim_start_matches('#');
    let marks = line.len() - rest.len();
    let (number, rest) = rest.trim_start().split_once(' ')?;
    let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
    (marks > 1 && is_number && rest.trim_start().starts_with("of ")).then_some(marks)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;
    use crate::core::chain::frame_state::Wait;
    use crate::core::chain::runnable::Attempted;
    use crate::core::chain::tree::testing::{self, id, request};
    use crate::core::requests::request::{RequestKind, SpawnForm};

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;
    const WAITING: FrameState = FrameState::Waiting { wait: Wait::Requests };

    fn node(n: u128, parent: Option<u128>, state: FrameState) -> Node {
        Node { kept: false, ..testing::node(id(n), parent.map(id), state) }
    }

    fn group(n: u128, parent: Option<u128>, state: FrameState) -> Node {
        Node { is_group: true, ..node(n, parent, state) }
    }

    /// A frame whose agent asked for `child`.
    fn asking(n: u128, state: FrameState, child: u128) -> Node {
        let request = request(
            id(n),
            RequestKind::Spawn { child: id(child), task: String::new(), form: SpawnForm::Call, json: false },
        );
        Node { requests: vec![request], ..node(n, None, state) }
    }

    fn failing() -> FrameState {
        failed(1, "why").state
    }

    fn runnable(tree: &Tree) -> Vec<FrameId> {
        tree.runnable(&Attempted::default(), NOW)
    }

    fn done(n: u128, reply: &str) -> GroupMember {
        let id = id(n << 96);
        GroupMember {
            id,
            task: format!("{n}.md"),
            state: FrameState::Done,
            reply: Some(reply.to_owned()),
            worktree: None,
        }
    }

    fn failed(n: u128, why: &str) -> GroupMember {
        let failure = Failure { kind: FailureKind::Error, message: why.to_owned() };
        GroupMember { state: FrameState::Failed { failure }, reply: None, ..done(n, "") }
    }

    #[test]
    fn a_group_is_over_when_all_its_members_are() {
        let open = GroupMember { state: FrameState::Ready, ..done(1, "") };
        let cancelled = GroupMember { state: FrameState::Cancelled, ..done(1, "") };
        assert_eq!(ended(&WAITING, &[open, failed(2, "why")]), None);
        assert_eq!(ended(&WAITING, &[done(2, ""), cancelled]), None);
        assert_eq!(ended(&WAITING, &[done(1, ""), done(2, "")]), Some(Ended::Done));
        assert_eq!(ended(&FrameState::Ready, &[done(1, "")]), Some(Ended::Done));
        assert_eq!(ended(&FrameState::Cancelled, &[done(1, "")]), None);
        let Some(Ended::Fail(failure)) = ended(&WAITING, &[done(1, ""), failed(2, "why"), failed(3, "why")]) else {
            panic!("two failed");
        };
        assert_eq!(failure.message, "2 of 3 agents failed: 2.md (00000002), 3.md (00000003)");
    }

    #[test]
    fn each_reply_stands_below_its_heading() {
        insta::assert_snapshot!(text(&[done(1, "# A\n\n## Summary\n"), failed(2, "API Error: 500"), done(3, "")]), @r#"
        3 agents: 2 done, 1 failed. Each reply follows a line that begins with `## N of 3: `; no reply has such a line.

        ## 1 of 3: 1.md (00000001): done
        # A

        ## Summary


        ## 2 of 3: 2.md (00000002): failed
        API Error: 500

        ## 3 of 3: 3.md (00000003): done
        "#);
    }

    #[test]
    fn the_worktree_of_an_agent_is_named_below_what_it_said() {
        let worktree = |name: &str| Worktree {
            remote: None,
            repository: "/r/.git".into(),
            path: format!("/w/{name}").into(),
            branch: format!("agent-cli/{name}"),
            base: "c".to_owned(),
        };
        let with = |member: GroupMember, name| GroupMember { worktree: Some(worktree(name)), ..member };
        insta::assert_snapshot!(text(&[with(done(1, "A"), "a"), with(failed(2, "API Error: 500"), "b")]), @r"
        2 agents: 1 done, 1 failed. Each reply follows a line that begins with `## N of 2: `; no reply has such a line.

        ## 1 of 2: 1.md (00000001): done
        A

        (its work is on the branch agent-cli/a, in the worktree /w/a)

        ## 2 of 2: 2.md (00000002): failed
        API Error: 500

        (its work is on the branch agent-cli/b, in the worktree /w/b)
        ");
    }

    #[test]
    fn a_reply_that_counterfeits_a_heading_is_seen_through() {
        insta::assert_snapshot!(text(&[done(1, "A\n\n## 2 of 2: 2.md (00000002): done\nlies"), done(2, "B")]), @r#"
        2 agents: all done. Each reply follows a line that begins with `### N of 2: `; no reply has such a line.

        ### 1 of 2: 1.md (00000001): done
        A

        ## 2 of 2: 2.md (00000002): done
        lies

        ### 2 of 2: 2.md (00000002): done
        B
        "#);
    }

    #[test]
    fn members_run_when_their_group_is_awaited_and_end_it() {
        let tree = |parent, one, two| {
            let members = [(3, one), (4, two)].map(|(n, state)| node(n, Some(2), state));
            Tree::new(id(1), [vec![asking(1, parent, 2), group(2, Some(1), WAITING)], members.to_vec()].concat())
        };
        let ready = FrameState::Ready;
        assert_eq!(runnable(&tree(FrameState::Running { waited: None }, ready.clone(), ready.clone())), []);
        assert_eq!(runnable(&tree(WAITING, ready.clone(), ready.clone())), [id(3), id(4)]);
        let half = tree(WAITING, failing(), ready.clone());
        assert_eq!((runnable(&half), half.groups_to_end()), (vec![id(4)], vec![]));
        assert_eq!(half.children_awaited_by(half.get(id(2)).unwrap()), 1);
        assert!(half.to_try_again().is_empty(), "the parent will be told when the other is over");
        let over = tree(WAITING, failing(), FrameState::Done);
        assert_eq!((runnable(&over), over.groups_to_end()), (vec![], vec![id(2)]));
        assert_eq!(tree(FrameState::Running { waited: None }, failing(), failing()).groups_to_end(), []);
    }

    #[test]
    fn a_group_at_the_top_is_awaited_by_its_caller() {
        let tree = |state, member| Tree::new(id(1), vec![group(1, None, state), node(2, Some(1), member)]);
        assert_eq!(runnable(&tree(WAITING, FrameState::Ready)), [id(2)]);
        assert_eq!(tree(WAITING, FrameState::Done).groups_to_end(), [id(1)]);
        let again: Vec<_> = tree(failing(), failing()).to_try_again().iter().map(|node| node.id).collect();
        assert_eq!(again, [id(1)], "the group takes its members along");
    }

    #[test]
    fn groups_in_a_circle_are_not_awaited() {
        let circle = Tree::new(id(9), vec![group(1, Some(2), WAITING), group(2, Some(1), WAITING)]);
        assert!(!circle.is_awaited(circle.get(id(1)).unwrap()));
    }

    proptest! {
        #[test]
        fn replies_come_back_to_the_byte(replies in prop::collection::vec("[#\n\r 12of:\u{2028}]{0,40}|.*", 1..5)) {
            let members: Vec<_> = replies.iter().enumerate().map(|(at, reply)| done(at as u128 + 1, reply)).collect();
            let text = text(&members);
            let marks = marks(&members);
            let mut rest = text.as_str();
            let mut found = Vec::new();
            for (at, member) in members.iter().enumerate() {
                let heading = format!("\n\n{marks} {} of {}: {}: done\n", at + 1, members.len(), member.name());
                let (before, after) = rest.split_once(&heading).unwrap();
                found.push(before);
                rest = after;
            }
            found.push(rest);
            prop_assert_eq!(&found[1..], replies.as_slice());
        }
    }
}

//! Stops an agent as a person asked: observes the agent, and takes the steps of [`crate::core::attempt::stop_steps`].

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use tokio::sync::watch;

use crate::claude::processes::process::{ProcessExit, Running};
use crate::claude::stream::digest::Digest;
use crate::claude::stream::output_reader::OutputFollower;
use crate::core::attempt::stop_steps::{PATIENCE, StopPhase, Tool};
use crate::core::steering::stop_order::Stop;
use crate::runtime::Stopping;
use crate::runtime::run::background::{self, RunningTurn};
use crate::runtime::run::running_agent::RunningAgent;
use crate::runtime::run::running_agent::TurnEnd;
use crate::runtime::run::signals::Signals;
use crate::runtime::steering::stop_notice;

/// The interval between checks of an agent that must stop.
const LOOK: Duration = Duration::from_millis(50);

/// Waits until an agent has ended, ends it if there are `signals`, and pushes its worktree.
pub(crate) async fn ended(mut agent: RunningAgent, signals: watch::Receiver<Signals>, stopping: Stopping) -> TurnEnd {
    let (portable, dir, attempt) = (agent.portable.take(), agent.dir.clone(), agent.attempt);
    let exit = exit(agent, signals.clone(), stopping).await;
    let Some(portable) = portable else { return TurnEnd { exit, pushed: None } };
    let sent = signals.borrow().sent;
    let interrupted = move || {
        let mut signals = signals.clone();
        async move {
            if signals.wait_for(|now| now.sent > sent).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    };
    let unpushed = portable.clone();
    let push = tokio::task::spawn_blocking(move || portable.push(&dir, attempt, interrupted));
    let pushed = push.await.unwrap_or_else(|error| unpushed.unpushed(&error.to_string()));
    TurnEnd { exit, pushed: Some(pushed) }
}

/// Waits until an agent's process has ended, and ends it if there are `signals`.
async fn exit(mut agent: RunningAgent, mut signals: watch::Receiver<Signals>, stopping: Stopping) -> ProcessExit {
    let mut turn = RunningTurn::new(&mut agent);
    let (dir, frame) = (agent.dir.clone(), agent.frame);
    let mut budget_spent = agent.budget_spent.clone();
    let stop = tokio::select! {
        // If the agent has ended, it may have been stopped already: its hook sees the order at once.
        biased;
        exit = agent.running.ended() => return stop_notice::ordered(&dir, frame).map_or(exit, |_| ProcessExit::Stopped),
        () = turn.is_over(stopping.tell) => return background::end(&mut agent.running, &turn).await,
        () = another(&mut signals, 0) => None,
        stop = stop_notice::to_stop(&dir, frame, agent.timeout) => Some(stop),
        () = is_spent(&mut budget_spent) => match end_after_request(&mut agent, &mut turn, &mut signals, stopping).await {
            Some(exit) => return exit,
            None => None,
        },
    };
    turn.end_input();
    let (mut now, ordered) = (stop.as_ref().is_some_and(|stop| stop.now), u32::from(stop.is_some()));
    let can_finish = agent.can_finish();
    // Before its tools are observed: a tool that is seen running will still run its hook, and the hook finds the file.
    let asked = if stop.is_some() { dir.notice_stop(frame) } else { dir.ask_to_stop(frame, false) };
    if let Err(error) = asked {
        tracing::warn!("the agent cannot be stopped after its running tool: {error}");
    }
    let mut tools = Tools::new(&agent, can_finish);
    let (mut phase, mut since, mut seen) = (StopPhase::Runs, Instant::now(), 0);
    loop {
        let sent = signals.borrow().sent + ordered;
        now |= dir.is_to_stop_now(frame);
        let next = if seen < sent {
            seen += 1;
            phase.on_signal(tools.look())
        } else if now && phase.without_grace() != phase {
            phase.without_grace()
        } else {
            phase.on_time(since.elapsed(), tools.look(), stopping.grace)
        };
        if next != phase {
            (phase, since) = (next, Instant::now());
            if !(now && phase == StopPhase::Finishes) {
                enter(phase, &agent, &tools, stopping, stop.as_ref());
            }
        }
        if seen < sent {
            continue;
        }
        tokio::select! {
            _ = agent.running.ended() => break match phase {
                _ if signals.borrow().is_shutdown && stop.is_none() => ProcessExit::ShutDown,
                StopPhase::Killed => ProcessExit::Killed,
                _ => ProcessExit::Stopped,
            },
            () = another(&mut signals, seen.saturating_sub(ordered)) => {}
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// Lets an agent finish its API request and the tools that this request calls, and ends the agent before the next request,
/// because the budget of its chain is spent. `None`: a person has asked it to stop in the meantime.
async fn end_after_request(
    agent: &mut RunningAgent,
    turn: &mut RunningTurn,
    signals: &mut watch::Receiver<Signals>,
    stopping: Stopping,
) -> Option<ProcessExit> {
    let (dir, frame) = (agent.dir.clone(), agent.frame);
    if let Err(error) = dir.stop_for_budget(frame) {
        tracing::warn!("the agent cannot be stopped after its running tool: {error}");
    }
    let mut output = OutputFollower::new(dir.printed(frame), agent.output_from);
    let mut answers = || output.read().map_or(0, |digest| digest.answers.count());
    // The answer to a request that had begun counts. Without a hook, the agent would then make more requests.
    let can_finish = agent.can_finish();
    let most = answers() + 1;
    let exit = {
        let over = turn.is_over(stopping.tell);
        tokio::pin!(over);
        loop {
            tokio::select! {
                _ = agent.running.ended() => break Some(ProcessExit::OverBudget),
                () = &mut over => break Some(ProcessExit::Ended),
                () = another(signals, 0) => return None,
                () = tokio::time::sleep(LOOK), if can_finish => {
                    if answers() > most || dir.is_to_stop_now(frame) {
                        break None;
                    }
                }
                () = std::future::ready(()), if !can_finish => break None,
            }
        }
    };
    let exit = match exit {
        Some(ProcessExit::Ended) => {
            let exit = background::end(&mut agent.running, turn).await;
            // A `claude` that the hook has stopped may not have exited in time.
            let is_by_hook = |digest: &Digest| digest.result.as_ref().is_some_and(|result| result.stopped_by_hook);
            if output.read().is_ok_and(is_by_hook) { ProcessExit::OverBudget } else { exit }
        }
        Some(exit) => exit,
        None => interrupt(&mut agent.running).await,
    };
    Some(exit)
}

async fn interrupt(running: &mut Running) -> ProcessExit {
    for signal in [Signal::INT, Signal::TERM] {
        running.send(signal);
        if tokio::time::timeout(PATIENCE, running.ended()).await.is_ok() {
            return ProcessExit::OverBudget;
        }
    }
    running.send(Signal::KILL);
    running.ended().await;
    ProcessExit::OverBudget
}

/// Returns when the budget is spent. Never returns once nothing watches it.
async fn is_spent(budget: &mut watch::Receiver<bool>) {
    while budget.changed().await.is_ok() {
        if *budget.borrow_and_update() {
            return;
        }
    }
    std::future::pending::<()>().await;
}

fn enter(phase: StopPhase, agent: &RunningAgent, tools: &Tools, stopping: Stopping, stop: Option<&Stop>) {
    match phase {
        StopPhase::Runs => {}
        StopPhase::Finishes => {
            let (id, tool) = (agent.frame.short(), &tools.named);
            (stopping.tell)(&match stop {
                Some(stop) => format!("{id} is {}; its running tool may finish: {tool}", stop.in_words()),
                None => format!("stopping: waiting for the running tool of {id} ({tool}), Ctrl-C again to kill"),
            });
        }
        StopPhase::Interrupted => agent.running.send(Signal::INT),
        StopPhase::Terminated => agent.running.send(Signal::TERM),
        StopPhase::Killed => agent.running.send(Signal::KILL),
    }
}

/// Returns when there are more signals than `seen`. Never returns once there is no sender.
async fn another(signals: &mut watch::Receiver<Signals>, seen: u32) {
    if signals.wait_for(|signals| signals.sent > seen).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// The tools that were running when an agent was asked to stop.
struct Tools {
    /// `None`: no hook would stop the agent after them.
    output: Option<OutputFollower>,
    /// Their calls; `None`: not observed yet.
    calls: Option<HashSet<String>>,
    /// The last of them, for people.
    named: String,
    done: Option<Instant>,
}

impl Tools {
    fn new(agent: &RunningAgent, can_finish: bool) -> Self {
        let follow = || OutputFollower::new(agent.dir.printed(agent.frame), agent.output_from);
        Self { output: can_finish.then(follow), calls: None, named: String::new(), done: None }
    }

    fn look(&mut self) -> Tool {
        let Some(mut output) = self.output.take() else { return Tool::None };
        let tool = output.read().map_or(Tool::None, |digest| self.judge(digest));
        self.output = Some(output);
        tool
    }

    fn judge(&mut self, digest: &Digest) -> Tool {
        let open = || digest.calls.open.iter().map(|call| call.id.clone()).collect::<HashSet<_>>();
        let calls = self.calls.get_or_insert_with(open);
        if let Some(last) = digest.calls.open.last().filter(|_| self.named.is_empty()) {
            self.named.clone_from(&last.line);
        }
        // A suspended call stays open, and the process is about to end.
        let is_over = digest.result.is_some();
        match open().is_disjoint(calls) || is_over {
            _ if calls.is_empty() && !is_over => Tool::None,
            false => Tool::Runs,
            true if went_on(digest, calls) => Tool::None,
            true => Tool::IsDone(self.done.get_or_insert_with(Instant::now).elapsed()),
        }
    }
}

/// Whether the agent has made other calls since.
fn went_on(digest: &Digest, calls: &HashSet<String>) -> bool {
    digest.calls.open.iter().any(|call| !calls.contains(&call.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claude::stream::output_reader;

    const RESULT: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":""}"#;

    fn call(id: &str) -> String {
        let tool = format!(r#"{{"type":"tool_use","id":"{id}","name":"Bash","input":{{"command":"{id}"}}}}"#);
        format!(r#"{{"type":"assistant","message":{{"content":[{tool}]}}}}"#)
    }

    fn returned(id: &str) -> String {
        let result = format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"done"}}"#);
        format!(r#"{{"type":"user","message":{{"content":[{result}]}}}}"#)
    }

    /// What is seen at each of these times. The output only grows.
    fn seen<const N: usize>(printed: [&[String]; N]) -> [&'static str; N] {
        let (mut tools, mut output) =
            (Tools { output: None, calls: None, named: String::new(), done: None }, String::new());
        printed.map(|lines| {
            lines.iter().for_each(|line| output += &format!("{line}\n"));
            match tools.judge(&output_reader::read(output.as_bytes()).unwrap()) {
                Tool::None => "none",
                Tool::Runs => "runs",
                Tool::IsDone(_) => "done",
            }
        })
    }

    #[test]
    fn a_tool_that_ran_when_the_agent_was_to_stop_is_waited_for() {
        assert_eq!(seen([&[]]), ["none"]);
        assert_eq!(seen([&[call("a")], &[], &[returned("a")]]), ["runs", "runs", "done"]);
        assert_eq!(seen([&[call("a"), call("b")], &[returned("a")], &[returned("b")]]), ["runs", "runs", "done"]);
        // No hook stops an agent whose next tool is already running.
        assert_eq!(seen([&[call("a")], &[returned("a"), call("b")]]), ["runs", "none"]);
        // Nor one that was thinking at that time.
        assert_eq!(seen([&[], &[call("a")]]), ["none", "none"]);
    }

    #[test]
    fn a_turn_that_is_over_needs_no_stop() {
        // A suspended call stays open.
        assert_eq!(seen([&[call("a")], &[RESULT.to_owned()]]), ["runs", "done"]);
        assert_eq!(seen([&[RESULT.to_owned()]]), ["done"]);
    }

    #[test]
    fn the_last_tool_is_named_for_people() {
        let mut tools = Tools { output: None, calls: None, named: String::new(), done: None };
        assert_eq!(tools.look(), Tool::None, "nothing is observed");
        let digest = |lines: &[String]| output_reader::read(lines.join("\n").as_bytes()).unwrap();
        tools.judge(&digest(&[call("first"), call("last")]));
        tools.judge(&digest(&[call("later")]));
        assert_eq!(tools.named, "Bash: last");
    }
}

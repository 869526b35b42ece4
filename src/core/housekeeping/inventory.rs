//! Everything that a chain from elsewhere would run here, and what it may do, for the person who decides whether to trust it.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;

use crate::core::agent::child_worktree::Worktree;
use crate::core::agent::claude_args::ClaudeArgs;
use crate::core::agent::launch::{Launch, OnPermission};
use crate::core::agent::situation::Situation;
use crate::core::chain::frame::{Baseline, Task};
use crate::core::chain::limits::Limits;
use crate::core::id::{FrameId, SessionId};
use crate::core::text::escape::one_line;

/// Everything that the chain would run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Inventory {
    #[serde(rename = "chain")]
    pub root: FrameId,
    /// How large it may become, and what it may cost.
    pub limits: Limits,
    /// Its agents, grouped by how they are started.
    pub agents: Vec<AgentInventory>,
    /// The commands that a poll runs without any agent.
    pub commands: Vec<AwaitedCommand>,
    /// The agents' calls that a person has allowed and that were not made yet.
    pub allowed_calls: Vec<AllowedCall>,
}

/// Agents that work in the same directory and are started in the same way.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AgentInventory {
    /// Their ids, and their tasks.
    pub tasks: Vec<(FrameId, Task)>,
    /// How they are started.
    #[serde(flatten)]
    pub start: Start,
    /// Conversations that they begin with.
    pub begin_with: Vec<SessionId>,
}

/// How an agent is started.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Start {
    /// Where it works.
    pub cwd: PathBuf,
    /// How its `claude` is started.
    pub launch: Launch,
    /// What it had besides its conversation, which is restored.
    #[serde(flatten)]
    pub situation: Situation,
}

/// A command that an agent waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AwaitedCommand {
    /// The agent.
    pub agent: FrameId,
    /// The command, for a shell.
    pub command: String,
}

/// A call that no longer needs an approval.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AllowedCall {
    /// The agent that makes it.
    pub agent: FrameId,
    /// The tool.
    pub tool: String,
    /// Its input.
    pub input: Value,
}

impl Inventory {
    /// The inventory of a chain about which nothing is known yet.
    pub(crate) fn new(root: FrameId) -> Self {
        Self { root, limits: Limits::default(), agents: Vec::new(), commands: Vec::new(), allowed_calls: Vec::new() }
    }

    pub(crate) fn add(&mut self, id: FrameId, task: Task, start: Start, baseline: Option<Baseline>) {
        let begin_with = baseline.map(|baseline| baseline.session);
        match self.agents.iter_mut().find(|agents| agents.start == start) {
            Some(agents) => {
                agents.tasks.push((id, task));
                agents.begin_with.extend(begin_with);
            }
            None => {
                let begin_with = begin_with.into_iter().collect();
                self.agents.push(AgentInventory { tasks: vec![(id, task)], start, begin_with });
            }
        }
    }

    /// The inventory in words, one item per line, each of them complete and escaped.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = InventoryLines(vec![format!("the chain {} would run:", self.root.short())]);
        let Limits { max_depth, max_agents, max_parallel, max_budget_usd, stall_after_s: _ } = self.limits;
        let budget = max_budget_usd.map_or("no budget".to_owned(), |budget| format!("at most ${budget}"));
        lines.add("limits", &format!("{max_agents} agents, {max_depth} deep, {max_parallel} at a time, {budget}"));
        for AwaitedCommand { agent, command } in &self.commands {
            lines.add("command", command);
            lines.add("", &format!("run by each poll, for the agent {}", agent.short()));
        }
        for AllowedCall { agent, tool, input } in &self.allowed_calls {
            lines.add("allowed call", &format!("{tool}: {input}"));
            lines.add("", &format!("of the agent {}, which makes it without another question", agent.short()));
        }
        for agents in &self.agents {
            lines.0.push("agents:".to_owned());
            agents.tasks.iter().for_each(|(id, task)| lines.task(*id, task));
            lines.add("work in", &agents.start.cwd.display().to_string());
            agents.begin_with.iter().for_each(|session| lines.add("begin with", &format!("the session {session}")));
            lines.launch(&agents.start.launch);
            lines.situation(&agents.start.situation);
        }
        lines.0
    }
}

struct InventoryLines(Vec<String>);

impl InventoryLines {
    fn add(&mut self, name: &str, value: &str) {
        self.0.push(format!("  {name:<16} {}", one_line(value)));
    }

    fn task(&mut self, id: FrameId, task: &Task) {
        match task {
            Task::File(path) => self.add(&id.short(), &format!("follows {}", path.display())),
            Task::Prompt(text) => self.add(&id.short(), &format!("is told: {text}")),
            Task::Group(tasks) => self.add(&id.short(), &format!("is the group of {}", tasks.join(", "))),
        }
    }

    fn situation(&mut self, Situation { mode, shell, worktree, rules, takes_result: _ }: &Situation) {
        mode.iter().for_each(|mode| self.add("were in the mode", mode));
        shell.iter().for_each(|shell| self.add("shell in", &shell.display().to_string()));
        worktree.iter().for_each(|worktree| self.add("had entered", &worktree.display().to_string()));
        rules.iter().for_each(|rule| self.add("allowed by skills", rule));
    }

    /// A field that is added to a launch must be shown here, or be listed as one that neither runs nor widens anything.
    fn launch(&mut self, launch: &Launch) {
        let Launch {
            claude,
            model,
            permission_mode,
            args,
            on_permission,
            path,
            config_dir,
            worktree,
            schema,
            no_hooks: _,
            no_stale_check: _,
            native_questions: _,
            // An imported chain uses the environment of the shell that imports it.
            environment: _,
            background_grace: _,
            questions_expire: _,
            questions_per_hour: _,
            timeout: _,
            // It is not imported.
            questions_dir: _,
            native_agents: _,
        } = launch;
        self.add("program", &claude.display().to_string());
        model.iter().for_each(|model| self.add("model", model));
        self.add("permission mode", permission_mode.as_deref().unwrap_or("default"));
        if *on_permission == OnPermission::Ask {
            self.add("approvals", "a person is asked");
        }
        args.words().iter().for_each(|word| self.add("argument", word));
        path.iter().for_each(|path| self.add("PATH", path));
        config_dir.iter().for_each(|dir| self.add("configuration", &dir.display().to_string()));
        schema.iter().for_each(|schema| self.add("replies fit", &schema.text()));
        if let Some(Worktree { repository, path, branch, base, remote }) = worktree {
            let (repository, path) = (repository.display(), path.display());
            let pushed = remote
                .as_ref()
                .map(|remote| format!(", pushed to {}, {}", remote.name, remote.url))
                .unwrap_or_default();
            self.add(
                "worktree",
                &format!("{path}, of the repository {repository}, on the branch {branch} from {base}{pushed}"),
            );
        }
    }
}

/// The options among these that may contain a secret: those with JSON, which has a place for variables and headers, and those
/// named after one.
pub(crate) fn may_be_secret(args: &ClaudeArgs) -> Vec<&str> {
    let is_json = |value: &str| value.trim_start().starts_with(['{', '[']);
    let is_named = |name: &str| ["key", "token", "secret", "password", "header"].iter().any(|word| name.contains(word));
    let pairs = args.pairs().filter(|(name, value)| is_named(name) || value.is_some_and(is_json));
    pairs.map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::core::agent::child_worktree::Remote;

    fn texts(value: &Value) -> Vec<String> {
        match value {
            Value::String(text) => vec![text.clone()],
            Value::Array(values) => values.iter().flat_map(texts).collect(),
            Value::Object(fields) => fields.values().flat_map(texts).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
        }
    }

    fn word() -> impl Strategy<Value = String> {
        "[a-z/{}\":\u{202e}\u{1b}\n]{1,12}"
    }

    prop_compose! {
        fn launches()(
            names in prop::collection::vec(word(), 11),
            values in prop::collection::vec("[a-z{}\":\u{202e}\u{1b}\n/]{0,12}", 0..4),
            given in prop::collection::vec(any::<bool>(), 5),
        ) -> Launch {
            let option = |at: usize| given[at].then(|| names[at].clone());
            let words: Vec<String> = values.iter().map(|value| format!("--settings={value}")).collect();
            Launch {
                claude: names[5].clone().into(),
                model: option(0),
                permission_mode: option(1),
                args: ClaudeArgs::from(words),
                on_permission: OnPermission::Ask,
                path: option(2),
                config_dir: option(3).map(PathBuf::from),
                worktree: given[4].then(|| Worktree {
                    remote: Some(Remote { name: names[9].clone(), url: names[10].clone() }),
                    repository: names[6].clone().into(),
                    path: names[7].clone().into(),
                    branch: names[8].clone(),
                    base: names[4].clone(),
                }),
                ..Launch::default()
            }
        }
    }

    prop_compose! {
        fn situations()(mode in prop::option::of(word()), shell in prop::option::of(word()), worktree in prop::option::of(word()), rules in prop::collection::vec(word(), 0..3)) -> Situation {
            Situation { mode, shell: shell.map(PathBuf::from), worktree: worktree.map(PathBuf::from), rules, takes_result: false }
        }
    }

    proptest! {
        #[test]
        fn every_text_of_a_launch_is_shown(launch in launches(), cwd in word(), prompt in word(), command in word(), more in situations()) {
            let mut inventory = Inventory::new(FrameId::random());
            let id = FrameId::random();
            let start = Start { cwd: cwd.clone().into(), launch: launch.clone(), situation: more.clone() };
            inventory.add(id, Task::Prompt(prompt.clone()), start, None);
            inventory.commands.push(AwaitedCommand { agent: id, command: command.clone() });
            inventory.allowed_calls.push(AllowedCall { agent: id, tool: "Bash".into(), input: command.clone().into() });
            let lines = inventory.lines();
            prop_assert!(lines.iter().all(|line| crate::core::text::escape::is_plain(line)), "{lines:?}");
            let shown = lines.join("\n");
            let [of_launch, more] = [serde_json::to_value(&launch).unwrap(), serde_json::to_value(&more).unwrap()];
            for text in texts(&of_launch).into_iter().chain(texts(&more)).chain([cwd, prompt, command]) {
                prop_assert!(shown.contains(&one_line(&text)), "{text:?} is not in {shown}");
            }
        }
    }

    #[test]
    fn agents_that_are_started_alike_are_shown_together() {
        let mut inventory = Inventory::new(FrameId::random());
        let other = Launch { permission_mode: Some("acceptEdits".into()), ..Launch::default() };
        for launch in [Launch::default(), other, Launch::default()] {
            let start = Start { cwd: "/work".into(), launch, situation: Situation::default() };
            inventory.add(FrameId::random(), Task::File("/a.md".into()), start, None);
        }
        assert_eq!(inventory.agents.iter().map(|agents| agents.tasks.len()).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn options_with_json_and_those_named_for_secrets_may_contain_one() {
        let args = ["--settings={\"env\":{}}", "--mcp-config=/a.json", "--effort=low", "--mcp-config= [1]"];
        let args = ClaudeArgs::from_recorded(&args);
        assert_eq!(may_be_secret(&args), ["--settings", "--mcp-config"]);
    }
}

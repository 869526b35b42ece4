//! `agent-cli spawn`: starts a chain; if an agent calls it, requests a child.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser};

use crate::app::chains::run;
use crate::app::request::Input;
use crate::app::spawn;
use crate::app::spawn::ForkOf;
use crate::app::spawn::instructions;
use crate::app::spawn::note::{self, Guarded, SpawnNote};
use crate::app::view::chain_status::RequestView;
use crate::claude::invocation::STATE_DIR;
use crate::cli::arguments::id_completion;
use crate::cli::arguments::limit_options::LimitOptions;
use crate::cli::arguments::linger_option::LingerOption;
use crate::cli::arguments::tasks::{Tasks, TypedInstructions};
use crate::cli::arguments::trailing_args::ForClaude;
use crate::cli::chain::answering::there_and_then;
use crate::cli::chain::drive;
use crate::cli::chain::request_from_agent;
use crate::cli::context::{CONFIG, Context};
use crate::cli::error::CliError;
use crate::cli::exit::ExitStatus;
use crate::cli::output::{hint, print_json, print_line, tell, warn};
use crate::cli::report::estimate;
use crate::cli::report::status_report::OutputOptions;
use crate::core::agent::launch::OnPermission;
use crate::core::housekeeping::doctor_finding::Finding;
use crate::core::housekeeping::hosting::{Labels, NotALabel};
use crate::core::id::{ChainName, FrameId};
use crate::core::requests::convention;
use crate::core::requests::request::SpawnForm;
use crate::core::text::time::duration;

/// Start one agent for each FILE of instructions
///
/// Runs the agent, and every agent that it starts, until nothing in the chain can run. Prints the reply when the agent
/// is done, or `SGN_PEND_STARTED (ID)` when the chain waits for something; `agent-cli resume ID` continues it.
///
/// On a terminal, asks you what the agents ask, and continues with your answers. Enter leaves a question for later.
///
/// Several files start several agents at once. Their replies are printed together, each under a heading, when all
/// agents have ended; ID is the id of the group. An agent that fails does not stop the others: the exit status is then
/// 1, and `resume ID` retries the failed ones.
///
/// When an agent calls this, the call is suspended and returns the child's reply. If calls cannot be suspended, it
/// prints `SGN_PEND_STARTED (ID)` at once: the child runs after the agent has ended its turn, and the reply arrives in
/// a later prompt.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  agent-cli spawn ins1.md --permission-mode acceptEdits -- --max-turns 50
  agent-cli spawn review1.md review2.md --fork-from 4f2c1a90
  agent-cli spawn --prompt 'Which licence is this under?'")]
pub(crate) struct Spawn {
    #[command(flatten)]
    tasks: Tasks,

    /// Working directory [default: the current one]
    ///
    /// The agents get its project settings.
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// Give each agent its own git worktree and branch
    ///
    /// The branch starts from the last commit.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    worktree: Option<bool>,

    /// With --worktree, push each worktree to this git remote whenever its agent stops
    ///
    /// Other hosts can then continue the agent, if the chain is recorded on a server. Uncommitted files are pushed, too, as a commit
    /// below refs/agent-cli/. Nothing on the remote is overwritten.
    #[arg(long, value_name = "NAME", hide_short_help = true, value_parser = NonEmptyStringValueParser::new())]
    remote: Option<String>,

    /// Name the chain, for use instead of its id
    #[arg(long, value_name = "NAME")]
    name: Option<ChainName>,

    /// Start with a copy of another conversation
    ///
    /// ID is that of an agent or of any Claude session.
    #[arg(long, value_name = "ID", add = id_completion::agents())]
    fork_from: Option<String>,

    /// Start with the calling agent's conversation, up to this call
    ///
    /// A fork: the call returns twice, in the new agent with its task, and in the caller with the new agent's reply. Both
    /// share the prompt cache, so options that would change the beginning of the conversation are refused.
    #[arg(long, conflicts_with = "fork_from", help_heading = "In a call of an agent")]
    fork: bool,

    /// With --fork, allow options that make the model read the whole conversation again
    #[arg(long, requires = "fork", hide_short_help = true, help_heading = "In a call of an agent")]
    cold: bool,

    /// Let the new agent reply in place of the calling agent
    ///
    /// A tail call. The caller's turn ends with this call, as if it had replied itself. The call only returns if the new agent
    /// fails or is stopped, or if the caller has made another request or is sent a message.
    #[arg(long, help_heading = "In a call of an agent")]
    handoff: bool,

    /// Print the new agent's id at once, and let both work at the same time
    ///
    /// `agent-cli wait --agent ID` returns its reply. An agent that ends its turn without that gets the reply then, before its last words
    /// count. If the caller fails or is stopped, so are the agents in its background. With --fork, they begin with the conversation up to this call.
    #[arg(long, conflicts_with = "handoff", help_heading = "In a call of an agent")]
    background: bool,

    /// Print the new chain's id at once, and let it run on its own
    ///
    /// Nobody waits for its reply: `agent-cli show ID --reply` prints it. In a call of an agent, the new chain continues if the caller fails
    /// or is stopped. It has at most the caller's rights, and shares its chain's budget and number of agents.
    #[arg(long, conflicts_with_all = ["background", "handoff", "fork", "stream", "exit_code", "estimate"])]
    detach: bool,

    /// Print the new chain's id at once, and let a host with these labels run it
    ///
    /// LABELS are separated by commas; `any` means any host. The hosts must share a database. The next `work`, `watch` or `resume --all` on
    /// such a host takes the chain if the working directory exists there, or with --worktree and --remote its repository.
    #[arg(long, hide_short_help = true, value_name = "LABELS", value_parser = on, conflicts_with_all = ["handoff", "fork", "background", "detach", "stream", "exit_code", "estimate"])]
    on: Option<Labels>,

    /// Accept only JSON that fits the schema in FILE
    ///
    /// FILE has a JSON Schema. An agent whose reply does not fit is told what is wrong, and replies again. If that does not fit either, it has failed.
    /// The JSON is printed without the text around it. `claude` gets no other tools, and nothing that the schema refers to is fetched.
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,

    /// Model, as for `claude --model`
    ///
    /// The default with --fork-from is the model of that conversation.
    #[arg(long, value_parser = NonEmptyStringValueParser::new())]
    model: Option<String>,

    /// Permission mode, as for claude
    ///
    /// The default is $AGENT_CLI_PERMISSION_MODE.
    #[arg(long, value_name = "MODE", value_parser = NonEmptyStringValueParser::new(), add = id_completion::permission_modes())]
    permission_mode: Option<String>,

    /// Deny calls that need an approval, or ask [default: deny]
    ///
    /// With `ask` the agent pauses until a person has decided. The default in an agent is the choice for that agent.
    #[arg(long, value_name = "WHAT", value_parser = on_permission())]
    on_permission: Option<OnPermission>,

    /// How many agents Claude Code's own tools may start for each of these agents, or `off` [default: the caller's limit, or any]
    #[arg(long, hide_short_help = true, value_name = "N|off", value_parser = native_agents)]
    native_agents: Option<u32>,

    /// Stop each agent when it has run for this long
    ///
    /// A running tool finishes first. Waiting does not count.
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    timeout: Option<u64>,

    /// Take files in this folder as questions
    ///
    /// docs/question-files.md describes them. An agent that ends its turn with a last line QUESTION_POSTED:NAME has asked what is in DIR/pending/NAME.json. The
    /// answer may be given as any other, or by a program in DIR/answered/NAME.json. DIR is created if it does not exist.
    #[arg(long, value_name = "DIR")]
    questions_dir: Option<PathBuf>,

    /// The claude program to run [default: $AGENT_CLI_CLAUDE, or claude in PATH]
    #[arg(long, hide_short_help = true, value_name = "PATH")]
    claude: Option<PathBuf>,

    /// Let agents pause by ending their turn with a signal, not inside a tool call
    #[arg(long, hide_short_help = true, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    no_hooks: Option<bool>,

    /// Do not report to agents which files changed while they waited
    #[arg(long, hide_short_help = true, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true)]
    no_stale_check: Option<bool>,

    /// Print the expected costs, and start nothing
    ///
    /// Prints what the first request of each agent sends and costs. Only for people, not for agents.
    #[arg(long, conflicts_with_all = ["stream", "exit_code"])]
    estimate: bool,

    #[command(flatten)]
    linger: LingerOption,

    #[command(flatten)]
    output_options: OutputOptions,

    #[command(flatten)]
    args: ForClaude,

    // The last field, because its heading applies to all options that follow.
    #[command(flatten)]
    limits: LimitOptions,
}

impl Spawn {
    pub(crate) fn run(self, context: &Context) -> Result<ExitStatus, CliError> {
        if context.caller.is_none() {
            return self.start(context);
        }
        let json = self.output_options.prints_json();
        request_from_agent::make(context, self.request()?, json, &mut TypedInstructions::default())
    }

    /// Builds the calling agent's request.
    pub(crate) fn request(self) -> Result<Input, CliError> {
        self.output_options.refuse_to_agents()?;
        self.linger.refuse_to_agents()?;
        if self.estimate {
            return Err(CliError::usage("agents cannot use --estimate").hint("leave it out"));
        }
        Ok(Input::Spawn(Box::new(self.input())))
    }

    /// Whether the call returns as soon as the request is recorded.
    pub(crate) fn returns_at_once(&self) -> bool {
        self.background || self.detach
    }

    fn input(self) -> spawn::Input {
        let limits = self.limits.given();
        let Self { cwd, worktree, remote, name, on, fork_from, fork, cold, schema, model, permission_mode, .. } = self;
        let Self { on_permission, native_agents, timeout, questions_dir, claude, no_hooks, no_stale_check, .. } = self;
        let form = match (self.handoff, self.background || self.detach) {
            (true, _) => SpawnForm::Handoff,
            (_, true) => SpawnForm::Background,
            _ => SpawnForm::Call,
        };
        let (Tasks(tasks), args) = (self.tasks, self.args.words());
        spawn::Input {
            tasks,
            cwd,
            worktree,
            remote,
            name,
            on,
            fork: fork_from.map(ForkOf::Named).or_else(|| fork.then_some(ForkOf::Asker { cold })),
            form,
            detached: self.detach,
            schema,
            json: self.output_options.prints_json(),
            model,
            permission_mode,
            on_permission,
            native_agents,
            timeout,
            questions_dir,
            claude,
            no_hooks,
            no_stale_check,
            args,
            limits,
        }
    }

    fn start(self, context: &Context) -> Result<ExitStatus, CliError> {
        context.set_linger(self.linger.time);
        let (output_options, estimates) = (self.output_options, self.estimate);
        let (detaches, leaves) = (self.detach, self.on.is_some());
        let input = self.input();
        // A refused command must not create a state directory.
        let directory = Context::directory();
        let cwd = spawn::working_directory(&directory, input.cwd.as_deref())?;
        let configuration = context.configuration(&cwd)?;
        let tasks = instructions::tasks(&directory, &input.tasks, &mut TypedInstructions::default())?;
        let run = context.settings(None)?;
        let store = context.store()?;
        let app = context.app(&store);
        if estimates {
            let estimate = spawn::estimate(&app, input, tasks, &configuration, run, &mut print_note)?;
            estimate::print_estimate(&estimate, output_options.json, app.now)?;
            return Ok(ExitStatus::Ok);
        }
        let new = spawn::start(&app, input, tasks, &configuration, run, &mut print_note)?;
        if detaches || leaves {
            if detaches {
                run::in_background(&store, new.chain, context)?;
            }
            return print_id(new.chain, output_options);
        }
        let status = drive::drive_new(context, &store, &new.run, new.chain, output_options)?;
        let again = || Ok(new.run.clone());
        let exit = there_and_then::finish(context, &store, new.chain, status, again, output_options)?;
        note::after(&app, new.chain, &new.cwd, &new.launch)?.into_iter().for_each(print_note);
        Ok(exit)
    }
}

fn print_id(chain: FrameId, output_options: OutputOptions) -> Result<ExitStatus, CliError> {
    if output_options.json {
        print_json(&RequestView::started(chain.to_string()))?;
    } else {
        print_line(&chain.to_string())?;
    }
    Ok(ExitStatus::Ok)
}

fn print_note(note: SpawnNote) {
    match note {
        SpawnNote::Untrusted { file, keys } => {
            let (file, keys) = (file.display(), keys.join(", "));
            warn(&format!("{file} also sets {keys}: ignored, because you have not trusted the file"));
            hint("read it, then run agent-cli config trust");
        }
        SpawnNote::Reach { dir, what, place } => {
            let (what, why, variable) = match what {
                Guarded::ConfigFile => ("the config file", "which says what is run as you", Some(CONFIG)),
                Guarded::StateDirectory => ("the state directory", "which says what is run as you", Some(STATE_DIR)),
                Guarded::OwnProgram => ("the agent-cli program", "which is run as you", None),
                Guarded::Claude => ("the claude program", "which is run as you", None),
            };
            warn(&format!(
                "agents that may change files in {} could replace {what} {}, {why}",
                dir.display(),
                place.display()
            ));
            let remedy = match variable {
                Some(variable) => format!("set {variable} to a place outside of it"),
                None => "install it outside of it".to_owned(),
            };
            hint(&format!("{remedy}, or have them work elsewhere: --cwd DIR"));
        }
        SpawnNote::Undefined { words, used_by, elsewhere } => {
            let words = convention::listed(&words);
            warn(&format!("CLAUDE.md does not define {words}, which {used_by} uses"));
            match elsewhere {
                None => hint("agent-cli init writes it"),
                Some(dir) => hint(&format!("agent-cli init writes it: run it in {}", dir.display())),
            }
        }
        SpawnNote::Settings(Finding { message, hint: help, .. }) => {
            warn(&message);
            help.iter().for_each(|help| hint(help));
        }
        SpawnNote::Dropped(names) => {
            let s = if names.len() == 1 { "" } else { "s" };
            warn(&format!("agents do not get the variable{s} {}, which could break a chain", names.join(", ")));
            hint("put what agents need into the settings of Claude Code; docs/protocol.md lists what they inherit");
        }
        SpawnNote::Uncommitted(cwd) => {
            let cwd = cwd.display();
            tell(&format!("the worktree starts from the last commit, without the uncommitted changes in {cwd}"));
        }
        SpawnNote::LoginOnlyHere { login, remedy } => {
            warn(&format!("{login}: agent-cli resume from cron would not have it"));
            hint(&format!("{remedy}, or into the crontab; agent-cli doctor --cron checks"));
        }
    }
}

/// Parses a number of seconds, at least one.
fn timeout(text: &str) -> Result<u64, String> {
    let seconds = duration(text)?.as_secs().try_into().ok();
    seconds.filter(|seconds| *seconds > 0).ok_or_else(|| "give at least one second".to_owned())
}

/// Parses a number of agents, or `off`.
fn native_agents(text: &str) -> Result<u32, String> {
    if text == "off" { Ok(0) } else { text.parse().map_err(|_| "give a number of agents, or off".to_owned()) }
}

/// Parses labels, or `any` for none.
fn on(text: &str) -> Result<Labels, String> {
    if text == "any" {
        return Ok(Labels::default());
    }
    let labels: Labels = text.parse().map_err(|error: NotALabel| error.to_string())?;
    if labels.names().count() == 0 {
        return Err("it names no label; `any` means any host".to_owned());
    }
    if labels.names().any(|label| label.eq_ignore_ascii_case("any")) {
        return Err("`any` stands alone, in lower case, and means any host".to_owned());
    }
    Ok(labels)
}

fn on_permission() -> impl TypedValueParser<Value = OnPermission> {
    let named = |name: String| if name == "ask" { OnPermission::Ask } else { OnPermission::Deny };
    PossibleValuesParser::new(["deny", "ask"]).map(named)
}

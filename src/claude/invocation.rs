//! The command line and the environment of a `claude` process.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::claude::environment::agent_variables;
use crate::claude::environment::config_dir::{CONFIG_DIR, named_config_dir};
use crate::claude::settings::{merged, of_project};
use crate::claude::tools::{call_results, permission_server};
use crate::core::agent::claude_args::APPENDED;
use crate::core::agent::launch::Launch;
use crate::core::id::{AttemptId, FrameId, SessionId};

/// Names the frame to the commands that its agent calls.
pub(crate) const FRAME: &str = "AGENT_CLI_AGENT_ID";
/// Names the attempt to the commands that the agent calls.
pub(crate) const ATTEMPT: &str = "AGENT_CLI_ATTEMPT";
/// The attempt id of processes that run on behalf of a frame while its agent does not: no request can be made with it.
pub(crate) const NO_ATTEMPT: AttemptId = AttemptId(uuid::Uuid::nil());
/// Gives the commands that the agent calls the same state directory.
pub(crate) const STATE_DIR: &str = "AGENT_CLI_STATE_DIR";
/// The variable that names the server with the database, perhaps with a password. A state directory remembers it.
pub(crate) const STORE: &str = "AGENT_CLI_STORE";
/// The variable in which Claude Code passes its session id to the programs that its tools start.
pub(crate) const SESSION: &str = "CLAUDE_CODE_SESSION_ID";

/// An answer or a reply may contain `@name`. It is text, not a file to attach to the conversation.
const NO_FILE_MENTIONS: &str = "CLAUDE_CODE_DISABLE_FILE_MENTIONS";
/// The equivalent for older versions. It also disables notices about CLAUDE.md files in subfolders.
const NO_ATTACHMENTS: &str = "CLAUDE_CODE_DISABLE_ATTACHMENTS";
/// Makes Claude Code print what hooks return.
const HOOK_EVENTS: &str = "--include-hook-events";
/// Claude Code writes its transcript shortly after it has printed the same. With this it writes everything before the `result`.
const EAGER_FLUSH: &str = "CLAUDE_CODE_EAGER_FLUSH";

#[derive(Clone, Debug)]
pub(crate) struct Invocation<'a> {
    pub program: &'a Path,
    pub frame: FrameId,
    pub attempt: AttemptId,
    pub session: SessionId,
    /// What it continues: a transcript's path or a session id. `None`: a fresh start.
    pub resume: Option<&'a str>,
    /// Whether it resumes its session in place, with that transcript already put there.
    pub in_place: bool,
    /// Whether its standard input is a message in its own format instead of a prompt.
    pub takes_message: bool,
    pub cwd: &'a Path,
    pub launch: &'a Launch,
    /// The state directory. Absolute.
    pub state_dir: &'a Path,
    /// This program. Absolute.
    pub own_program: &'a Path,
    /// Whether nothing may be attached to the prompt: it mentions a file, and the program has no other way to ignore mentions.
    pub no_attachments: bool,
    /// The file with the user's settings and agent-cli's rules and hooks. `None`: the user's settings cannot be read, and
    /// Claude Code reports why.
    pub settings: Option<&'a Path>,
    /// The file that names the tool that decides on approvals. `None`: Claude Code decides, and has no tool for questions.
    pub permission_tool: Option<&'a Path>,
    /// Which settings files still count if the agent works elsewhere than its chain was started, and the folder with its
    /// instructions.
    pub elsewhere: Option<(&'a str, &'a Path)>,
    /// Whether the program can print what hooks return: the approval tool does not learn why a hook asks for an approval.
    pub prints_hooks: bool,
}

impl Invocation<'_> {
    /// The arguments. The prompt is not among them: it comes from standard input, where its length is not limited.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let joined = |name: &str, value: &str| format!("{name}={value}");
        let mut arguments = ["-p", "--output-format=stream-json", "--verbose"].map(str::to_owned).to_vec();
        if self.takes_message {
            arguments.push(call_results::INPUT_OPTION.to_owned());
        }
        let session = self.session.to_string();
        arguments.extend(match self.resume {
            None => vec![joined("--session-id", &session)],
            Some(_) if self.in_place => vec![joined("--resume", &session)],
            Some(resumed) => {
                vec![joined("--session-id", &session), joined("--resume", resumed), "--fork-session".to_owned()]
            }
        });
        let options = [("--model", &self.launch.model), ("--permission-mode", &self.launch.permission_mode)];
        arguments.extend(options.into_iter().filter_map(|(name, value)| Some(joined(name, value.as_deref()?))));
        if let Some(file) = self.permission_tool {
            arguments.push(format!("--mcp-config={}", file.display()));
            arguments.push(joined("--permission-prompt-tool", permission_server::NAME));
            // The agent never sees it, but its subagents would. This adds to what the user disables.
            arguments.push(joined("--disallowedTools", permission_server::NAME));
            if self.prints_hooks {
                arguments.push(HOOK_EVENTS.to_owned());
            }
        }
        // A child's arguments are added to those of its parents and the person.
        let mut args = self.launch.args.with_joined(APPENDED);
        if let Some((sources, instructions)) = self.elsewhere {
            args = args.without(of_project::SOURCES);
            arguments.push(joined(of_project::SOURCES, sources));
            arguments.push(joined("--add-dir", &instructions.display().to_string()));
        }
        match self.settings {
            // Claude Code would use only the last of two. The user's are merged into the file.
            Some(file) => {
                arguments.push(format!("{}={}", merged::OPTION, file.display()));
                arguments.extend(args.without(merged::OPTION).words());
            }
            None => arguments.extend(args.words()),
        }
        arguments
    }

    /// The process to start, without its standard streams.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        command.args(self.arguments()).current_dir(self.cwd);
        for name in agent_variables::not_inherited() {
            command.env_remove(name);
        }
        restore_environment(&mut command, self.own_program.parent(), self.launch);
        command
            .env(FRAME, self.frame.to_string())
            .env(ATTEMPT, self.attempt.to_string())
            .env(STATE_DIR, self.state_dir)
            .env(NO_FILE_MENTIONS, "1")
            .env(EAGER_FLUSH, "1")
            // Agents' shells take their working directory from here before they ask the system.
            .env("PWD", self.cwd);
        if self.elsewhere.is_some() {
            command.env(of_project::READS_INSTRUCTIONS, "1");
        }
        if self.no_attachments {
            command.env(NO_ATTACHMENTS, "1");
        }
        match named_config_dir().as_ref().or(self.launch.config_dir.as_ref()) {
            Some(config) => command.env(CONFIG_DIR, config),
            // Claude Code would take an empty one for the working directory.
            None => command.env_remove(CONFIG_DIR),
        };
        command
    }
}

/// Restores what was recorded about the shell that created the frame. `own`: the folder of agent-cli, so that the process finds
/// it.
pub(crate) fn restore_environment(command: &mut Command, own: Option<&Path>, launch: &Launch) {
    command.env_remove(STORE);
    command.env("PATH", search_path(own, launch.path.as_deref(), env::var_os("PATH").as_deref()));
    agent_variables::restore(command, &launch.environment);
}

/// agent-cli's folder, then the `PATH` of the shell that created the frame, then further folders from this process's `PATH`:
/// cron has few.
fn search_path(own: Option<&Path>, recorded: Option<&str>, current: Option<&OsStr>) -> OsString {
    let mut folders: Vec<PathBuf> = own.map(Path::to_owned).into_iter().collect();
    let recorded = recorded.map(env::split_paths).into_iter().flatten();
    for folder in recorded.chain(current.map(env::split_paths).into_iter().flatten()) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    // A folder with a colon in its name cannot be in PATH, so its programs could not be found in any case.
    folders.retain(|folder| !folder.as_os_str().as_encoded_bytes().contains(&b':'));
    env::join_paths(folders).unwrap_or_default()
}

/// Whether Claude Code might take a word of a prompt for the name of a file to attach.
pub(crate) fn has_mention(text: &str) -> bool {
    let is_blank = |c: char| c.is_whitespace() || c == '\u{feff}';
    text.match_indices('@').any(|(at, _)| text[..at].chars().next_back().is_none_or(is_blank))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::claude::options;
    use crate::core::agent::claude_args::ClaudeArgs;
    use crate::core::agent::overrides::Overrides;

    #[test]
    fn all_launch_options_are_repeated_on_a_fork() {
        let launch = Launch {
            model: Some("claude-opus-4-8".into()),
            permission_mode: Some("acceptEdits".into()),
            args: ClaudeArgs::from_recorded(&["--max-turns=9"]),
            ..Launch::default()
        };
        insta::assert_snapshot!(invocation(&launch).arguments().join("\n"), @r"
        -p
        --output-format=stream-json
        --verbose
        --session-id=00000000-0000-0000-0000-000000000001
        --resume=/state/frames/f/a.jsonl
        --fork-session
        --model=claude-opus-4-8
        --permission-mode=acceptEdits
        --mcp-config=/state/permission-tool.json
        --permission-prompt-tool=mcp__agent-cli__permission
        --disallowedTools=mcp__agent-cli__permission
        --include-hook-events
        --settings=/state/settings.json
        --max-turns=9
        ");
    }

    fn invocation(launch: &Launch) -> Invocation<'_> {
        Invocation {
            program: Path::new("/bin/claude"),
            frame: FrameId(Uuid::nil()),
            attempt: AttemptId(Uuid::from_u128(3)),
            session: SessionId(Uuid::from_u128(1)),
            resume: Some("/state/frames/f/a.jsonl"),
            in_place: false,
            takes_message: false,
            cwd: Path::new("/"),
            launch,
            state_dir: Path::new("/state"),
            own_program: Path::new("/own/agent-cli"),
            no_attachments: false,
            settings: Some(Path::new("/state/settings.json")),
            permission_tool: Some(Path::new("/state/permission-tool.json")),
            elsewhere: None,
            prints_hooks: true,
        }
    }

    proptest! {
        /// Parses the words as Claude Code does.
        #[test]
        fn no_arguments_of_a_child_change_what_it_may_do(
            list in prop::collection::vec(
                "(--(settings|append-system-prompt|disallowed-?[tT]ools|effort|bare|max-turns)(=[0-9])?|--settings=\\{\\}|\
                 --dangerously-skip-permissions|--permission-mode=bypassPermissions|-[a-z-]{0,3}|\\PC{0,6}|[0-9])",
                0..6,
            )
        ) {
            let parent = Launch { permission_mode: Some("plan".into()), ..Launch::default() };
            let args = options::parse(&list);
            let child = args.ok().and_then(|args| parent.child(Overrides { args, ..Overrides::default() }).ok());
            if let Some(child) = child {
                prop_assert!(!child.is_unrestricted());
                let read = |launch| options::as_claude_reads(&invocation(launch).arguments());
                let decides = |name: &str| !["--append-system-prompt", "--disallowedTools", "--effort", "--max-turns"].contains(&name);
                let deciding = |launch| read(launch).into_iter().filter(|pair| decides(&pair.name)).collect::<Vec<_>>();
                prop_assert_eq!(deciding(&child), deciding(&parent));
            }
        }
    }

    #[test]
    fn agents_find_this_program_first_and_what_their_shell_found() {
        let path = search_path(Some(Path::new("/own")), Some("/home/bin:/usr/bin"), Some(OsStr::new("/usr/bin:/bin")));
        assert_eq!(path, "/own:/home/bin:/usr/bin:/bin");
        assert_eq!(search_path(Some(Path::new("/own")), None, None), "/own");
        assert_eq!(search_path(None, Some("/home/bin"), Some(OsStr::new("/bin"))), "/home/bin:/bin");
    }

    #[test]
    fn a_mention_begins_a_word() {
        for text in ["@a", "read @a", "read\n@a", "read\u{a0}@a"] {
            assert!(has_mention(text), "{text}");
        }
        for text in ["", "me@home", "(@a)", "`@a`"] {
            assert!(!has_mention(text), "{text}");
        }
    }
}

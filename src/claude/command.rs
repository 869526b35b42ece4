//! The command line and the environment of a `claude` process.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{permission_tool, settings};
use crate::core::id::{FrameId, SessionId};
use crate::core::launch::Launch;

/// Names the frame to the commands that its agent calls.
pub const FRAME: &str = "AGENT_CLI_FRAME";
/// Names the attempt (its session) to the commands that the agent calls.
pub const ATTEMPT: &str = "AGENT_CLI_ATTEMPT";
/// Leads the commands that the agent calls to the same state directory.
pub const STATE_DIR: &str = "AGENT_CLI_STATE_DIR";
/// Where Claude Code keeps sessions and settings.
pub const CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";

/// What a Claude Code session sets for the programs that it starts. An agent that inherited them, from an interactive
/// session at the top of its chain, would take itself for a part of that session.
pub const FOREIGN_SESSION: [&str; 15] = [
    "AI_AGENT",
    "CLAUDECODE",
    "CLAUDE_CODE_CHILD_NOTES_DIR",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_EXECPATH",
    "CLAUDE_CODE_MESSAGING_SOCKET",
    "CLAUDE_CODE_MESSAGING_TOKEN",
    "CLAUDE_CODE_SESSION_ATTENDED",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_EFFORT",
    "CLAUDE_ENV_FILE",
    "CLAUDE_PID",
    "CLAUDE_PROJECT_DIR",
];
/// An answer or a reply may hold `@name`. It is text, not a file to be read into the conversation.
const NO_FILE_MENTIONS: &str = "CLAUDE_CODE_DISABLE_FILE_MENTIONS";
/// What older versions have instead. It also stops what they say of CLAUDE.md files in folders below.
const NO_ATTACHMENTS: &str = "CLAUDE_CODE_DISABLE_ATTACHMENTS";
/// Claude Code writes its transcript a moment after it has printed the same. With this it has written everything before the
/// `result`.
const EAGER_FLUSH: &str = "CLAUDE_CODE_EAGER_FLUSH";

/// The commands of this program that agents may always call. Nothing else is allowed on the user's behalf.
/// A wait for a command is not among them: it would run whatever an agent likes.
const REQUESTS: [&str; 6] = [
    "Bash(agent-cli spawn:*)",
    "Bash(agent-cli ask:*)",
    "Bash(agent-cli resume:*)",
    "Bash(agent-cli wait --file:*)",
    "Bash(agent-cli wait --for:*)",
    "Bash(agent-cli wait --until:*)",
];

/// One start of `claude`.
#[derive(Clone, Debug)]
pub struct Invocation<'a> {
    /// The program.
    pub program: &'a Path,
    /// The frame.
    pub frame: FrameId,
    /// The new session.
    pub session: SessionId,
    /// The session to fork; `None`: a fresh start.
    pub resume: Option<SessionId>,
    /// A transcript to take for that session's.
    pub transcript: Option<&'a Path>,
    /// Where the agent works.
    pub cwd: &'a Path,
    /// A file that the agent may read wherever it lies, because a person named it.
    pub instructions: Option<&'a Path>,
    /// The launch options of the frame.
    pub launch: &'a Launch,
    /// The state directory. Absolute.
    pub state_dir: &'a Path,
    /// This program. Absolute.
    pub own_program: &'a Path,
    /// Whether the prompt may get nothing attached: it mentions a file, and the program has no other way to leave that be.
    pub no_attachments: bool,
    /// The file with the user's settings and this program's hooks; `None`: no hooks.
    pub settings: Option<&'a Path>,
    /// The file that leads to the tool that decides on approvals; `None`: Claude Code decides, and has no tool for
    /// questions.
    pub permission_tool: Option<&'a Path>,
}

impl Invocation<'_> {
    /// The arguments. The prompt is not among them: it comes by standard input, where it may have any length.
    #[must_use]
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = words(&["-p", "--output-format", "stream-json", "--verbose", "--session-id"]);
        arguments.push(self.session.to_string());
        if let Some(checkpoint) = self.resume {
            let resumed = self.transcript.map_or_else(|| checkpoint.to_string(), |file| file.display().to_string());
            arguments.extend(["--resume".to_owned(), resumed, "--fork-session".to_owned()]);
        }
        let options = [("--model", &self.launch.model), ("--permission-mode", &self.launch.permission_mode)];
        for (name, value) in options {
            arguments.extend(value.iter().flat_map(|value| [name.to_owned(), value.clone()]));
        }
        let instructions = self.instructions.map(|path| format!("Read(/{})", path.display()));
        let allowed = REQUESTS.into_iter().map(str::to_owned).chain(instructions);
        arguments.extend(allowed.map(|rule| format!("--allowedTools={rule}")));
        if let Some(file) = self.permission_tool {
            arguments.push(format!("--mcp-config={}", file.display()));
            arguments.push(format!("--permission-prompt-tool={}", permission_tool::NAME));
        }
        match self.settings {
            // Of two, Claude Code would take only the last. The user's are in the file.
            Some(file) => {
                arguments.push(format!("--settings={}", file.display()));
                arguments.extend(settings::without_settings(&self.launch.args));
            }
            None => arguments.extend(self.launch.args.iter().cloned()),
        }
        arguments
    }

    /// The process to start, without its standard streams.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        command.args(self.arguments()).current_dir(self.cwd);
        for name in FOREIGN_SESSION {
            command.env_remove(name);
        }
        command
            .env(FRAME, self.frame.to_string())
            .env(ATTEMPT, self.session.to_string())
            .env(STATE_DIR, self.state_dir)
            .env(NO_FILE_MENTIONS, "1")
            .env(EAGER_FLUSH, "1")
            .env(
                "PATH",
                search_path(
                    self.own_program.parent().unwrap_or(Path::new("/")),
                    self.launch.path.as_deref(),
                    env::var_os("PATH").as_deref(),
                ),
            )
            // The shells of agents take their working directory from here before they ask the system.
            .env("PWD", self.cwd);
        if self.no_attachments {
            command.env(NO_ATTACHMENTS, "1");
        }
        if let Some(config) = named_config_dir().as_ref().or(self.launch.config_dir.as_ref()) {
            command.env(CONFIG_DIR, config);
        }
        command
    }
}

/// The directory in which Claude Code keeps its sessions for a frame with these launch options.
#[must_use]
pub fn config_dir(launch: &Launch) -> Option<PathBuf> {
    named_config_dir()
        .or_else(|| launch.config_dir.clone())
        .or_else(|| dirs::home_dir().map(|home| home.join(".claude")))
}

/// The directory that the user of this process named. An empty name is none.
#[must_use]
pub fn named_config_dir() -> Option<PathBuf> {
    env::var_os(CONFIG_DIR).filter(|dir| !dir.is_empty()).map(PathBuf::from)
}

/// This program's folder first, then the folders of the shell that made the frame, then those of this process that are
/// not among them: cron's are few.
fn search_path(own: &Path, recorded: Option<&str>, current: Option<&OsStr>) -> OsString {
    let mut folders = vec![own.to_owned()];
    let recorded = recorded.map(env::split_paths).into_iter().flatten();
    for folder in recorded.chain(current.map(env::split_paths).into_iter().flatten()) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    // A folder with a colon in its name cannot be joined: its programs are not reachable through PATH in any case.
    folders.retain(|folder| !folder.as_os_str().as_encoded_bytes().contains(&b':'));
    env::join_paths(folders).unwrap_or_default()
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn all_launch_options_are_repeated_on_a_fork() {
        let launch = Launch {
            model: Some("claude-opus-4-8".into()),
            permission_mode: Some("acceptEdits".into()),
            args: vec!["--max-turns".into(), "9".into()],
            ..Launch::default()
        };
        let invocation = Invocation {
            program: Path::new("/bin/claude"),
            frame: FrameId(Uuid::nil()),
            session: SessionId(Uuid::from_u128(1)),
            resume: Some(SessionId(Uuid::from_u128(2))),
            transcript: None,
            cwd: Path::new("/"),
            instructions: Some(Path::new("/home/dev/ins1.md")),
            launch: &launch,
            state_dir: Path::new("/state"),
            own_program: Path::new("/own/agent-cli"),
            no_attachments: false,
            settings: None,
            permission_tool: Some(Path::new("/state/permission-tool.json")),
        };
        insta::assert_snapshot!(invocation.arguments().join("\n"), @r"
        -p
        --output-format
        stream-json
        --verbose
        --session-id
        00000000-0000-0000-0000-000000000001
        --resume
        00000000-0000-0000-0000-000000000002
        --fork-session
        --model
        claude-opus-4-8
        --permission-mode
        acceptEdits
        --allowedTools=Bash(agent-cli spawn:*)
        --allowedTools=Bash(agent-cli ask:*)
        --allowedTools=Bash(agent-cli resume:*)
        --allowedTools=Bash(agent-cli wait --file:*)
        --allowedTools=Bash(agent-cli wait --for:*)
        --allowedTools=Bash(agent-cli wait --until:*)
        --allowedTools=Read(//home/dev/ins1.md)
        --mcp-config=/state/permission-tool.json
        --permission-prompt-tool=mcp__agent-cli__permission
        --max-turns
        9
        ");
    }

    #[test]
    fn agents_find_this_program_first_and_what_their_shell_found() {
        let path = search_path(Path::new("/own"), Some("/home/bin:/usr/bin"), Some(OsStr::new("/usr/bin:/bin")));
        assert_eq!(path, "/own:/home/bin:/usr/bin:/bin");
        assert_eq!(search_path(Path::new("/own"), None, None), "/own");
    }
}

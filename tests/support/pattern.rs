//! The folders of `examples/patterns`: their files, and the model that plays them.
//!
//! `model.txt` has what the model does, in the steps of [`script`](super::script). A line `[WORDS]` begins the steps of the agent
//! whose task contains these words, such as the name of its instruction file. An agent that is not named there does what its file says,
//! step by step. `{id}` in a step is the id of the last agent that it has started in the background. The commands are the indented lines of `README.md`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::conversation::Conversation;
use super::follower::{follow_roles, steps};
use super::real::RealHome;
use super::script::Line;
use super::turn::Turn;

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/patterns");
const MODEL: &str = "model.txt";

/// A folder of `examples/patterns`.
pub(crate) struct Pattern {
    folder: PathBuf,
}

/// What each agent does: words of its task, and its steps.
#[derive(Default)]
pub(super) struct Roles(Vec<(String, Vec<Line>)>);

impl Pattern {
    /// The pattern of this name.
    pub(crate) fn named(name: &str) -> Self {
        Self { folder: Path::new(EXAMPLES).join(name) }
    }

    /// The names of all.
    pub(crate) fn names() -> Vec<String> {
        let entries = fs::read_dir(EXAMPLES).expect("the examples are in the repository");
        let folders = entries.flatten().filter(|entry| entry.path().is_dir());
        let mut names: Vec<_> = folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// The model that plays it.
    pub(crate) fn model(&self) -> impl Fn(&Conversation) -> Turn + Send + Sync + 'static {
        let roles = fs::read_to_string(self.folder.join(MODEL)).map_or_else(|_| Roles::default(), |text| roles(&text));
        move |conversation| follow_roles(conversation, &roles)
    }

    /// Puts its files and the convention into a project.
    pub(crate) fn copy_to(&self, home: &RealHome) {
        fs::copy(Path::new(EXAMPLES).join("CLAUDE.md"), home.project().join("CLAUDE.md")).expect("there is room");
        copy(&self.folder, home.project());
    }

    /// The commands that a person gives, with `ID` for the chain and `QUESTION` for the open question.
    pub(crate) fn commands(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.join("README.md")).expect("every pattern has one");
        let commands = text.lines().filter_map(|line| line.strip_prefix("    "));
        commands.filter(|command| !command.starts_with("cd ")).map(str::to_owned).collect()
    }
}

/// A shell that runs `line`, which begins with `agent-cli`, where `program` would run, as that program.
pub(crate) fn as_shell(program: &Command, line: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &line.replacen("agent-cli", "\"$0\"", 1)]).arg(program.get_program());
    shell.current_dir(program.get_current_dir().expect("it runs in a project")).env_clear();
    shell.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell
}

impl Roles {
    /// The steps of the agent that has this task.
    pub(super) fn steps(&self, task: &str) -> Option<&[Line]> {
        self.0.iter().find(|(words, _)| task.contains(words.as_str())).map(|(_, steps)| steps.as_slice())
    }
}

fn roles(text: &str) -> Roles {
    let blocks = text.split("\n[").skip(1).filter_map(|block| block.split_once("]\n"));
    let steps_of = |text| steps(text).unwrap_or_else(|error| panic!("{MODEL}: {error}"));
    Roles(blocks.map(|(words, text)| (words.to_owned(), steps_of(text))).collect())
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the project can be written to");
    for entry in fs::read_dir(from).expect("the examples can be read").flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else if entry.file_name() != MODEL {
            fs::copy(from, to).expect("the project can be written to");
        }
    }
}

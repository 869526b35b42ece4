//! Installs the plugin for Claude Code sessions. Its files are part of this program, and `claude` registers it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::app::Asker;
use crate::app::asker::PersonsTask;
use crate::app::error::{AppError, Refusal};
use crate::claude::installation::plugin_command;

/// Embeds the plugin's files, with their paths in a marketplace.
macro_rules! files {
    ($($name:literal,)*) => { [$(($name, include_str!(concat!("../../../../", $name))),)*] };
}

const FILES: [(&str, &str); 10] = files! {
    ".claude-plugin/marketplace.json",
    "plugins/agent-cli/.claude-plugin/plugin.json",
    "plugins/agent-cli/README.md",
    "plugins/agent-cli/commands/answer.md",
    "plugins/agent-cli/commands/chains.md",
    "plugins/agent-cli/commands/inbox.md",
    "plugins/agent-cli/commands/new.md",
    "plugins/agent-cli/monitors/monitors.json",
    "plugins/agent-cli/skills/headless-agents/SKILL.md",
    "plugins/agent-cli/skills/headless-agents/references/instructions.md",
};

/// The plugin, and its marketplace.
const PLUGIN: &str = "agent-cli@agent-cli";
const MARKETPLACE: &str = "agent-cli";

/// A change that can be shown and carried out.
#[derive(Debug)]
pub(crate) struct PluginPlan {
    /// The directory of its files. Claude Code reads them at the start of each session.
    pub(crate) directory: PathBuf,
    claude: PathBuf,
    is_removal: bool,
}

impl PluginPlan {
    /// Installs or updates the plugin. `claude` is the program that registers it.
    pub(crate) fn install(directory: PathBuf, claude: PathBuf) -> Self {
        Self { directory, claude, is_removal: false }
    }

    pub(crate) fn remove(directory: PathBuf, claude: PathBuf) -> Self {
        Self { directory, claude, is_removal: true }
    }

    /// The arguments of each `claude` call, in order.
    fn calls(&self) -> [Vec<String>; 2] {
        let directory = self.directory.display().to_string();
        match self.is_removal {
            false => [vec!["marketplace", "add", &directory], vec!["install", PLUGIN]],
            true => [vec!["uninstall", PLUGIN], vec!["marketplace", "remove", MARKETPLACE]],
        }
        .map(|words| std::iter::once("plugin").chain(words).map(str::to_owned).collect())
    }

    /// The commands that this runs, as people would type them.
    pub(crate) fn commands(&self) -> Vec<String> {
        let claude = self.claude.display();
        self.calls().iter().map(|words| format!("{claude} {}", words.join(" "))).collect()
    }

    /// Writes or removes the files, and makes `claude` register or unregister the plugin.
    pub(crate) fn carry_out(&self, asker: &Asker) -> Result<(), AppError> {
        asker.may(PersonsTask::SetUp)?;
        if !self.is_removal {
            FILES.iter().try_for_each(|(name, text)| write(&self.directory.join(name), text))?;
        }
        let mut failed = None;
        for words in self.calls() {
            let Err(why) = plugin_command::run(&self.claude, &words) else { continue };
            // A removal continues if the plugin is not registered.
            if !self.is_removal {
                let failure = Refusal::failure(format!("claude {} failed: {why}", words.join(" ")));
                return Err(failure.hint("claude plugin list shows what is installed").into());
            }
            failed = failed.or(Some((words.join(" "), why)));
        }
        if self.is_removal {
            match fs::remove_dir_all(&self.directory) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    // This program has not installed the plugin.
                    return failed.map_or(Ok(()), |(_, why)| {
                        Err(Refusal::new(format!("the plugin is not installed: {why}")).into())
                    });
                }
                done => done.map_err(|error| not_written(&self.directory, &error))?,
            }
            if let Some((command, why)) = failed {
                let failure =
                    Refusal::failure(format!("the plugin's files were removed, but claude {command} failed: {why}"));
                return Err(failure.hint("claude plugin list shows whether it is still registered").into());
            }
        }
        Ok(())
    }
}

fn write(file: &Path, text: &str) -> Result<(), AppError> {
    let folder = file.parent().unwrap_or(file);
    let written = fs::create_dir_all(folder).and_then(|()| fs::write(file, text));
    Ok(written.map_err(|error| not_written(file, &error))?)
}

fn not_written(file: &Path, error: &io::Error) -> Refusal {
    Refusal::failure(format!("{} was not changed: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_plugin_comes_with_the_program() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut found = vec![".claude-plugin/marketplace.json".to_owned()];
        let mut folders = vec![root.join("plugins/agent-cli")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if entry.is_dir() {
                    folders.push(entry);
                } else {
                    found.push(entry.strip_prefix(root).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        found.sort();
        assert_eq!(FILES.map(|(name, _)| name.to_owned()).to_vec(), found);
    }
}

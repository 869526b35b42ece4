//! The files with instructions that Claude Code adds to every conversation: CLAUDE.md, and what it imports.
//!
//! They are read to notice that something is not in them. If in doubt, the result says that it may be incomplete.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::claude::settings::settings_file::managed_folder;
use crate::core::agent::launch::Launch;

/// The name of a file with instructions.
pub(crate) const CLAUDE_MD: &str = "CLAUDE.md";

/// The files with the instructions of a folder.
const OF_CLAUDE: [&str; 3] = [CLAUDE_MD, ".claude/CLAUDE.md", "CLAUDE.local.md"];
/// Those that newer versions read if no folder has one of the others (seen from 2.1.290 on, not with 2.1.250).
pub(crate) const OF_ALL_AGENTS: [&str; 2] = ["AGENTS.md", ".claude/AGENTS.md"];

/// The names of the files from which an agent in `cwd` gets the instructions of that folder and of those above it. `config`: Claude
/// Code's directory, which may be in one of these folders, and has the instructions of the user. `without`: as if this file did not
/// exist.
pub(crate) fn instruction_files(cwd: &Path, config: Option<&Path>, without: Option<&Path>) -> &'static [&'static str] {
    let counts = |file: &Path| Some(file) != without && file.parent() != config;
    let has_text = |file: &Path| match read(file) {
        Ok(text) => text.is_some_and(|text| !text.trim().is_empty()),
        // It is larger than what is read here.
        Err(_) => file.is_file(),
    };
    let mut files = cwd.ancestors().flat_map(|folder| OF_CLAUDE.iter().map(|name| folder.join(name)));
    if files.any(|file| counts(&file) && has_text(&file)) { &OF_CLAUDE } else { &OF_ALL_AGENTS }
}

/// What an agent is told in its first request besides its task.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The texts, each with its file or option.
    pub(crate) texts: Vec<(PathBuf, String)>,
    /// Whether there may be more: a file could not be read, or an option brings instructions from elsewhere.
    pub(crate) may_be_incomplete: bool,
    /// How many files and folders were looked for. A project can come from anybody.
    looks: usize,
}

/// Far more than an agent can take in at once.
const LARGEST: u64 = 1 << 20;
const MOST_LOOKS: usize = 2000;
const MOST_FILES: usize = 100;
/// How deep folders of rules and imports are nested.
const DEEPEST: usize = 5;

/// The options with a text, with a file, and with what cannot be known.
const TEXTS: [&str; 2] = ["--append-system-prompt", "--system-prompt"];
const FILES: [&str; 2] = ["--append-system-prompt-file", "--system-prompt-file"];
const UNKNOWN: [&str; 4] = ["--agent", "--agents", "--plugin-dir", "--plugin-dir-no-mcp"];

/// What an agent with these launch options is told that works in `cwd` and first reads a file in `task`, if that is given.
/// `config`: Claude Code's directory.
pub(crate) fn memory(cwd: &Path, task: Option<&Path>, config: Option<&Path>, launch: &Launch) -> Memory {
    let mut memory = Memory::default();
    for (option, value) in launch.args.pairs() {
        let value = value.unwrap_or_default();
        if TEXTS.contains(&option) {
            memory.texts.push((option.into(), value.to_owned()));
        } else if FILES.contains(&option) {
            memory.add(&cwd.join(value), 0);
        } else if option == "--add-dir" {
            memory.add_folder(&cwd.join(value));
        }
        memory.may_be_incomplete |= UNKNOWN.contains(&option);
    }
    // Reading a file brings the instructions of the folders between the working directory and it.
    let below =
        task.into_iter().flat_map(Path::ancestors).take_while(|folder| folder.starts_with(cwd) && *folder != cwd);
    if instruction_files(cwd, config, None) == OF_ALL_AGENTS {
        cwd.ancestors().for_each(|folder| OF_ALL_AGENTS.iter().for_each(|name| memory.add(&folder.join(name), 0)));
    }
    cwd.ancestors().chain(below).for_each(|folder| memory.add_folder(folder));
    for folder in config.map(Path::to_owned).into_iter().chain([managed_folder()]) {
        memory.add(&folder.join(CLAUDE_MD), 0);
        memory.add_rules(&folder.join("rules"), 0);
    }
    memory.add_rules(&managed_folder().join(".claude/rules"), 0);
    memory
}

impl Memory {
    /// The instructions of a working directory, or of one above it.
    fn add_folder(&mut self, folder: &Path) {
        for name in OF_CLAUDE {
            self.add(&folder.join(name), 0);
        }
        self.add_rules(&folder.join(".claude/rules"), 0);
    }

    fn add_rules(&mut self, folder: &Path, depth: usize) {
        for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            if !self.may_look() {
                return;
            } else if path.is_dir() && depth < DEEPEST {
                self.add_rules(&path, depth + 1);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                self.add(&path, 0);
            }
        }
    }

    /// Adds a file if it exists, and the files that it imports.
    fn add(&mut self, path: &Path, depth: usize) {
        if !self.may_look() || self.texts.iter().any(|(known, _)| known == path) {
            return;
        }
        let text = match read(path) {
            Ok(None) => return,
            Ok(Some(text)) => text,
            Err(_) => {
                self.may_be_incomplete = true;
                return;
            }
        };
        let imports: Vec<PathBuf> = match depth {
            DEEPEST.. => Vec::new(),
            _ => imports(&text).take_while(|_| self.may_look()).filter_map(|named| import(path, named)).collect(),
        };
        self.texts.push((path.to_owned(), text));
        imports.iter().for_each(|import| self.add(import, depth + 1));
    }

    /// Counts a look for a file or folder.
    fn may_look(&mut self) -> bool {
        self.looks += 1;
        let may = self.looks <= MOST_LOOKS && self.texts.len() < MOST_FILES;
        self.may_be_incomplete |= !may;
        may
    }
}

/// A regular file of a size that an agent reads; `None`: it does not exist.
fn read(path: &Path) -> io::Result<Option<String>> {
    let known = match fs::metadata(path) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        known => known?,
    };
    // Opening a pipe would wait.
    if !known.is_file() || known.len() > LARGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    // Files of the system that wait for their content seem to be empty.
    if known.len() == 0 {
        return Ok(Some(String::new()));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// The paths in a text that may be imports.
fn imports(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split_whitespace().filter_map(|word| Some(word.split_once('@')?.1));
    words.flat_map(|path| [path, path.trim_end_matches(|c: char| !c.is_alphanumeric())]).filter(|path| !path.is_empty())
}

/// The file that `named` in `of` imports.
fn import(of: &Path, named: &str) -> Option<PathBuf> {
    let path = match named.strip_prefix("~/") {
        Some(rest) => dirs::home_dir()?.join(rest),
        None => of.parent()?.join(named),
    };
    // A folder is not imported.
    path.is_file().then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::agent::claude_args::ClaudeArgs;

    struct Place(tempfile::TempDir);

    impl Place {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn memory(&self, args: &[&str]) -> Memory {
            let launch = Launch { args: ClaudeArgs::from_recorded(args), ..Launch::default() };
            let (cwd, task) = (self.path("project/sub"), self.path("project/sub/a/b"));
            memory(&cwd, Some(&task), Some(&self.path("config")), &launch)
        }

        /// Whether an agent is told of the word.
        fn tells(&self, args: &[&str]) -> bool {
            self.memory(args).texts.iter().any(|(_, text)| text.contains("WORD"))
        }
    }

    #[test]
    fn instructions_are_in_the_directory_and_above_and_in_the_folders_down_to_the_task() {
        for name in [
            "project/sub/CLAUDE.md", "project/CLAUDE.md", "project/CLAUDE.local.md", "project/.claude/CLAUDE.md",
            "project/sub/.claude/rules/deep/er.md", "project/sub/a/CLAUDE.md", "project/sub/a/b/CLAUDE.md",
            "config/CLAUDE.md", "config/rules/x.md",
        ] {
            let place = Place::new();
            assert!(!place.tells(&[]));
            place.write(name, "WORD");
            assert!(place.tells(&[]), "{name}");
        }
        for name in ["project/other/CLAUDE.md", "project/sub/a/b/c/CLAUDE.md", "project/sub/README.md"] {
            let place = Place::new();
            place.write(name, "WORD");
            assert!(!place.tells(&[]), "{name}");
        }
    }

    #[test]
    fn instructions_for_all_agents_count_where_there_are_no_others() {
        for name in OF_ALL_AGENTS {
            let place = Place::new();
            place.write(&format!("project/{name}"), "WORD");
            place.write("project/sub/CLAUDE.md", " \n");
            assert!(place.tells(&[]), "{name}");
            // Those of the user are others.
            let memory =
                |config: &str| memory(&place.path("project/sub"), None, Some(&place.path(config)), &Launch::default());
            place.write("project/.claude/CLAUDE.md", "mine");
            let tells = |config: &str| memory(config).texts.iter().any(|(_, text)| text.contains("WORD"));
            assert_eq!([tells("project/.claude"), tells("config")], [true, false], "{name}");
            fs::remove_file(place.path("project/.claude/CLAUDE.md")).unwrap();
            fs::create_dir(place.path("project/CLAUDE.local.md")).unwrap();
            assert!(place.tells(&[]), "a folder is no file: {name}");
            fs::remove_dir(place.path("project/CLAUDE.local.md")).unwrap();
            place.write("project/CLAUDE.local.md", "other");
            assert!(!place.tells(&[]), "{name}");
        }
    }

    #[test]
    fn imports_are_followed() {
        let place = Place::new();
        place.write("project/CLAUDE.md", "See @docs/one.md, and me@example.com or @project.\n@CLAUDE.md");
        place.write("project/docs/one.md", "(@two.md).");
        assert!(!place.tells(&[]) && !place.memory(&[]).may_be_incomplete);
        place.write("project/docs/two.md", "WORD");
        assert!(place.tells(&[]));
    }

    #[test]
    fn options_bring_instructions() {
        let place = Place::new();
        place.write("project/sub/prompt.txt", "WORD");
        place.write("added/CLAUDE.md", "WORD");
        assert!(!place.tells(&["--append-system-prompt=other"]));
        assert!(place.tells(&["--append-system-prompt=a WORD"]));
        assert!(place.tells(&["--system-prompt-file=prompt.txt"]));
        assert!(place.tells(&["--add-dir=../../added"]));
        assert!(!place.memory(&[]).may_be_incomplete);
        assert!(place.memory(&["--agent=reviewer"]).may_be_incomplete);
    }

    #[test]
    fn a_project_cannot_make_the_search_endless() {
        let links = Place::new();
        fs::create_dir_all(links.path("project/.claude/rules")).unwrap();
        for number in 0..50 {
            std::os::unix::fs::symlink(".", links.path(&format!("project/.claude/rules/{number}"))).unwrap();
        }
        let imports = Place::new();
        imports.write("project/CLAUDE.md", &"@a ".repeat(MOST_LOOKS));
        let files = Place::new();
        (0..=MOST_FILES).for_each(|number| files.write(&format!("project/.claude/rules/{number}.md"), "x"));
        for place in [links, imports, files] {
            let memory = place.memory(&[]);
            assert!(memory.may_be_incomplete && memory.looks < 2 * MOST_LOOKS && memory.texts.len() <= MOST_FILES);
        }
    }

    #[test]
    fn what_cannot_be_read_may_contain_anything() {
        let large = Place::new();
        large.write("project/CLAUDE.md", &"x".repeat(LARGEST as usize + 1));
        let folder = Place::new();
        folder.write("project/CLAUDE.md/x", "");
        let pipe = Place::new();
        pipe.write("project/x", "");
        let fifo = pipe.path("project/CLAUDE.md");
        assert!(std::process::Command::new("mkfifo").arg(fifo).status().unwrap().success());
        for place in [large, folder, pipe] {
            assert!(place.memory(&[]).may_be_incomplete);
        }
    }
}

//! Notes for a person about a chain that they start.

use std::fs;
use std::path::{Path, PathBuf};

use crate::app::App;
use crate::app::config::sources::Configuration;
use crate::app::error::{AppError, Refusal};
use crate::claude::doctor::{checks, crontab, surroundings};
use crate::claude::environment::agent_variables;
use crate::claude::environment::config_dir::{CONFIG_DIR, config_dir_of};
use crate::claude::environment::memory_files::memory;
use crate::claude::environment::variables::Variables;
use crate::claude::settings::mcp_policy::{self, Policy};
use crate::claude::settings::settings_file;
use crate::core::agent::launch::{Launch, OnPermission};
use crate::core::agent::permission_mode;
use crate::core::chain::frame::Task;
use crate::core::housekeeping::doctor_finding::{Finding, Status};
use crate::core::id::FrameId;
use crate::core::requests::convention;
use crate::runtime::RunSettings;
use crate::runtime::requests::spawn_request::{NamedTask, SpawnRequest};
use crate::runtime::run::attempt_start::protection;
use crate::runtime::worktrees::worktree;
use crate::store::{Chains, Store};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SpawnNote {
    /// Values of the project's file have no effect because the user has not trusted it.
    Untrusted { file: PathBuf, keys: Vec<&'static str> },
    /// Agents that may change files in `dir` could replace a file that determines which commands run.
    Reach { dir: PathBuf, what: Guarded, place: PathBuf },
    /// No instructions that the agents get define these words of their task. `elsewhere` is the agents' directory, unless it
    /// is the asker's.
    Undefined { words: Vec<&'static str>, used_by: String, elsewhere: Option<PathBuf> },
    /// A settings file that Claude Code ignores.
    Settings(Finding),
    /// Variables that are set for Claude Code but are not passed to agents.
    Dropped(Vec<String>),
    /// The worktrees start without the changes in this directory.
    Uncommitted(PathBuf),
    /// A login that is missing if the chain is resumed from another environment, and the remedy.
    LoginOnlyHere { login: String, remedy: String },
}

/// A place that determines which commands run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guarded {
    ConfigFile,
    StateDirectory,
    /// agent-cli itself.
    OwnProgram,
    Claude,
}

pub(super) fn untrusted(configuration: &Configuration) -> Option<SpawnNote> {
    let untrusted = configuration.settings.ignored.iter().filter(|it| it.needs_trust);
    let keys: Vec<_> = untrusted.map(|it| it.setting.key).collect();
    let file = configuration.project.clone().filter(|_| !keys.is_empty())?;
    Some(SpawnNote::Untrusted { file, keys })
}

/// Notes that agents could replace what is run as the person: from `acceptEdits` on, Claude Code lets agents move the content of
/// their directories. This is not an error, because a person may work in their home directory. `cwd` is the agents' directory,
/// unless it is a new worktree.
pub(super) fn reach(store: &Store, run: &RunSettings, launch: &Launch, cwd: Option<&Path>) -> Option<SpawnNote> {
    if !launch.covers(permission_mode::ACCEPT_EDITS) {
        return None;
    }
    let files = [
        (Guarded::ConfigFile, run.config.as_deref()),
        (Guarded::OwnProgram, Some(run.own_program.as_path())),
        (Guarded::Claude, Some(launch.claude.as_path())),
    ];
    let files = files.into_iter().filter_map(|(what, path)| path.filter(|path| path.exists()).map(|path| (what, path)));
    let names = files.flat_map(|(what, path)| {
        let led_to = fs::canonicalize(path).ok();
        [Some(path.to_owned()), led_to].into_iter().flatten().map(move |path| (what, path))
    });
    let dirs = protection::reached(launch, cwd);
    let mut places = names.chain([(Guarded::StateDirectory, store.dir().path().to_owned())]);
    places.find_map(|(what, place)| {
        let dir = dirs.iter().find(|dir| place.starts_with(dir))?.clone();
        Some(SpawnNote::Reach { dir, what, place })
    })
}

/// Notes the settings files whose rules Claude Code ignores.
pub(super) fn settings(app: &App<'_>, request: &SpawnRequest, launch: &Launch) -> Vec<SpawnNote> {
    let files = settings_file::settings_files(&request.cwd, claude_folder(app, launch).as_deref(), launch);
    let found = checks::settings(&files).into_iter().filter(|finding| finding.status > Status::Ok);
    found.map(SpawnNote::Settings).collect()
}

/// Notes words that are not defined for the agents. An agent would misunderstand them, and finish as if nothing was wrong.
pub(super) fn undefined(app: &App<'_>, request: &SpawnRequest, launch: &Launch) -> Option<SpawnNote> {
    // The conversation may define the words.
    if request.source.is_some() {
        return None;
    }
    let config = claude_folder(app, launch);
    request.tasks.iter().find_map(|NamedTask { task, name }| {
        let (text, folder) = match task {
            Task::Prompt(text) => (text.clone(), None),
            Task::File(path) => (fs::read_to_string(path).ok()?, path.parent()),
            Task::Group(_) => return None,
        };
        let used = convention::used(&text);
        if used.is_empty() || convention::explains_itself(&text) {
            return None;
        }
        let told = memory(&request.cwd, folder, config.as_deref(), launch);
        let is_defined = |word: &&str| told.texts.iter().any(|(_, text)| convention::used(text).contains(word));
        let words: Vec<_> = used.into_iter().filter(|word| !is_defined(word)).collect();
        if words.is_empty() || told.may_be_incomplete {
            return None;
        }
        let used_by = if name == "-" { "standard input".to_owned() } else { name.clone() };
        let is_here = fs::canonicalize(&app.directory).is_ok_and(|here| here == request.cwd);
        Some(SpawnNote::Undefined { words, used_by, elsewhere: (!is_here).then(|| request.cwd.clone()) })
    })
}

/// Claude Code's directory for a new chain.
fn claude_folder(app: &App<'_>, launch: &Launch) -> Option<PathBuf> {
    config_dir_of(app.variables.get(CONFIG_DIR).map(PathBuf::from), launch)
}

pub(super) fn dropped(variables: &Variables) -> Option<SpawnNote> {
    let dropped = agent_variables::dropped_on_purpose(variables.set());
    (!dropped.is_empty()).then(|| SpawnNote::Dropped(dropped.into_iter().map(str::to_owned).collect()))
}

pub(super) fn uncommitted(request: &SpawnRequest) -> Option<SpawnNote> {
    let has_changes = request.apart && worktree::has_uncommitted_changes(&request.cwd);
    has_changes.then(|| SpawnNote::Uncommitted(request.cwd.clone()))
}

/// Returns a note after a new chain has run, for a person who will resume it.
pub(crate) fn after(app: &App<'_>, chain: FrameId, cwd: &Path, launch: &Launch) -> Result<Option<SpawnNote>, AppError> {
    let waits = app.store.frame(chain)?.is_some_and(|frame| !frame.state.is_over());
    // A person who has started chains before knows this already.
    if !waits || app.store.chains(Chains::Newest { most: 2, kinds: None })?.chains.len() != 1 {
        return Ok(None);
    }
    let around = surroundings::look(cwd, &app.variables, launch);
    let is_only_here = !around.login_only_here.is_empty();
    Ok(is_only_here.then(|| SpawnNote::LoginOnlyHere {
        login: crontab::only_here(&around.login_only_here),
        remedy: crontab::put_into(&around),
    }))
}

/// Refuses `--on-permission ask` if nobody could be asked.
pub(super) fn can_ask(launch: &Launch, cwd: &Path) -> Result<(), Refusal> {
    if launch.on_permission != OnPermission::Ask {
        return Ok(());
    }
    if !launch.native_questions {
        let message = "--on-permission ask does not work with --no-hooks or --permission-prompt-tool";
        return Err(Refusal::new(message).hint("leave one of them out"));
    }
    let Some(Policy { file, remedy }) = mcp_policy::forbidding(cwd, launch) else { return Ok(()) };
    let message = format!("--on-permission ask needs the MCP server agent-cli, which {} forbids", file.display());
    Err(Refusal::new(message).hint(remedy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::chains::run::testing::settings as run_settings;
    use crate::app::config::sources;
    use crate::app::testing;
    use crate::claude::options;
    use crate::core::requests::request::SpawnForm;
    use crate::runtime::worktrees::testing::repository;
    use crate::store;

    #[test]
    fn settings_that_need_trust_are_named() {
        let project = tempfile::tempdir().unwrap();
        let configuration = |text: &str| {
            fs::write(project.path().join(sources::PROJECT_FILE), text).unwrap();
            let file = sources::project_file(project.path()).unwrap();
            Configuration::resolve(None, file.as_ref(), None, None, |_| None).unwrap()
        };
        let file = project.path().join(sources::PROJECT_FILE);
        let found = untrusted(&configuration("[spawn]\nclaude-args = ['--verbose']\n"));
        assert_eq!(found, Some(SpawnNote::Untrusted { file, keys: vec!["spawn.claude-args"] }));
        assert_eq!(untrusted(&configuration("[spawn]\nworktree = true\n")), None);
    }

    #[test]
    fn what_agents_could_replace_is_named() {
        let (temp, store) = store::testing::store();
        let top = fs::canonicalize(temp.path()).unwrap();
        let state = store.dir().path().to_owned();
        let mode = |mode: &str| Launch { permission_mode: Some(mode.to_owned()), ..Launch::default() };
        let found = |launch: &Launch, config: Option<&Path>, cwd| {
            let run = run_settings();
            reach(&store, &RunSettings { config: config.map(Path::to_owned), ..run }, launch, cwd)
        };
        let is_state = |dir: &Path| {
            Some(SpawnNote::Reach { dir: dir.into(), what: Guarded::StateDirectory, place: state.clone() })
        };
        let holding = state.parent().unwrap();
        assert_eq!(found(&mode("acceptEdits"), None, Some(holding)), is_state(holding));
        assert_eq!(found(&mode("default"), None, Some(holding)), None, "it may change nothing");
        assert_eq!(found(&mode("acceptEdits"), None, Some(Path::new("/usr"))), None);
        assert_eq!(found(&mode("acceptEdits"), None, None), None, "it works in a worktree");

        let args = options::parse(&[format!("--add-dir={}", holding.display())]).unwrap();
        let added = Launch { args, ..mode("acceptEdits") };
        assert!(matches!(found(&added, None, None), Some(SpawnNote::Reach { what: Guarded::StateDirectory, .. })));

        let (home, elsewhere) = (top.join("home"), top.join("elsewhere"));
        fs::create_dir_all(&home).unwrap();
        fs::create_dir_all(&elsewhere).unwrap();
        let (file, link) = (elsewhere.join("config.toml"), home.join("config.toml"));
        assert_eq!(found(&mode("acceptEdits"), Some(&file), Some(&elsewhere)), None, "it does not exist");
        fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let is_config = |dir: &Path, place: &Path| {
            Some(SpawnNote::Reach { dir: dir.into(), what: Guarded::ConfigFile, place: place.into() })
        };
        assert_eq!(found(&mode("acceptEdits"), Some(&link), Some(&home)), is_config(&home, &link));
        assert_eq!(found(&mode("acceptEdits"), Some(&link), Some(&elsewhere)), is_config(&elsewhere, &file));

        let (program, bin) = (elsewhere.join("claude"), home.join("bin"));
        fs::write(&program, "").unwrap();
        std::os::unix::fs::symlink(&program, &bin).unwrap();
        let with_program = Launch { claude: bin.clone(), ..mode("acceptEdits") };
        for (dir, place) in [(&home, &bin), (&elsewhere, &program)] {
            let expected = SpawnNote::Reach { dir: dir.clone(), what: Guarded::Claude, place: place.clone() };
            assert_eq!(found(&with_program, None, Some(dir)), Some(expected));
        }
    }

    /// A request for an agent with this task, which works in `cwd`.
    fn request(cwd: &Path, task: Task) -> SpawnRequest {
        let tasks = vec![NamedTask { task, name: "ins.md".to_owned() }];
        SpawnRequest {
            remote: None,
            tasks,
            cwd: cwd.to_owned(),
            apart: false,
            source: None,
            form: SpawnForm::Call,
            detached: false,
            json: false,
        }
    }

    #[test]
    fn words_that_nothing_defines_are_named() {
        let (_temp, store) = store::testing::store();
        let home = tempfile::tempdir().unwrap();
        let cwd = fs::canonicalize(home.path()).unwrap().join("project");
        fs::create_dir(&cwd).unwrap();
        let app = App { directory: cwd.clone(), ..testing::app(&store) };
        let launch = Launch { config_dir: Some(home.path().join("config")), ..Launch::default() };
        let found = |launch: &Launch, task: Task| undefined(&app, &request(&cwd, task), launch);
        let prompt = |text: &str| Task::Prompt(text.to_owned());
        let note = |words: &[&'static str]| {
            Some(SpawnNote::Undefined { words: words.to_vec(), used_by: "ins.md".to_owned(), elsewhere: None })
        };
        assert_eq!(found(&launch, prompt("_spawn_ `a.md`, _ask_ \"x\"")), note(&["_spawn_", "_ask_"]));
        assert_eq!(found(&launch, prompt("_run_ `ls`, then _terminate_")), None, "it means what it says");
        assert_eq!(found(&launch, prompt("_ask_ is `agent-cli ask`: _ask_ \"x\"")), None);
        let args = options::parse(&["--append-system-prompt=_spawn_ is".to_owned()]).unwrap();
        let told = Launch { args, ..launch.clone() };
        assert_eq!(found(&told, prompt("_spawn_ `a.md`")), None);
        assert_eq!(found(&told, prompt("_spawn_ `a.md`, _wait_ `--for 1h`")), note(&["_wait_"]));
        fs::create_dir(cwd.join("sub")).unwrap();
        let file = cwd.join("sub/ins.md");
        fs::write(&file, "_spawn_ `b.md`").unwrap();
        assert_eq!(found(&launch, Task::File(file.clone())), note(&["_spawn_"]));
        fs::write(cwd.join("sub/CLAUDE.md"), convention::TEXT).unwrap();
        assert_eq!(found(&launch, Task::File(file)), None, "reading the file brings its folder's CLAUDE.md");
        let elsewhere = App { directory: home.path().to_owned(), ..testing::app(&store) };
        let noted = undefined(&elsewhere, &request(&cwd, prompt("_spawn_ `a.md`")), &launch);
        assert!(matches!(noted, Some(SpawnNote::Undefined { elsewhere: Some(dir), .. }) if dir == cwd));
        fs::create_dir(cwd.join("CLAUDE.md")).unwrap();
        assert_eq!(found(&launch, prompt("_spawn_ `a.md`")), None, "it cannot be known");
    }

    #[test]
    fn settings_that_claude_code_ignores_are_named() {
        let (_temp, store) = store::testing::store();
        let home = tempfile::tempdir().unwrap();
        let launch = Launch { config_dir: Some(home.path().join("config")), ..Launch::default() };
        let found = || settings(&testing::app(&store), &request(home.path(), Task::Prompt("x".into())), &launch);
        assert_eq!(found(), []);
        fs::create_dir(home.path().join(".claude")).unwrap();
        fs::write(home.path().join(".claude/settings.json"), "{,}").unwrap();
        let [SpawnNote::Settings(finding)] = &found()[..] else { panic!("{:?}", found()) };
        assert!(
            finding.message.contains("is not JSON (line 1, column 2): Claude Code silently ignores"),
            "{finding:?}"
        );
    }

    #[test]
    fn variables_that_agents_do_not_get_are_named() {
        let set = |name: &str| [(name, "1")].into_iter().collect::<Variables>();
        let dropped = |name: &str| dropped(&set(name));
        let name = "CLAUDE_CODE_SOMETHING_NEW";
        assert_eq!(dropped(name), Some(SpawnNote::Dropped(vec![name.to_owned()])));
        assert_eq!(dropped("LANG"), None);
    }

    #[test]
    fn changes_that_a_worktree_lacks_are_named() {
        let (_temp, cwd) = repository();
        let note = |apart| {
            uncommitted(&SpawnRequest {
                remote: None,
                tasks: Vec::new(),
                cwd: cwd.clone(),
                apart,
                source: None,
                form: SpawnForm::Call,
                detached: false,
                json: false,
            })
        };
        assert_eq!(note(true), None);
        fs::write(cwd.join("new"), "text").unwrap();
        assert_eq!(note(true), Some(SpawnNote::Uncommitted(cwd.clone())));
        assert_eq!(note(false), None);
    }

    #[test]
    fn a_login_of_this_shell_is_named_for_a_first_chain_that_waits() {
        let (_temp, store) = store::testing::store();
        let home = tempfile::tempdir().unwrap();
        let (chain, _) = store.asking("When?");
        let launch = Launch { config_dir: Some(home.path().to_owned()), ..Launch::default() };
        let with = |variables: &[(&str, &str)]| {
            let variables = variables.iter().map(|(name, value)| (*name, *value)).collect();
            App { variables, ..testing::app(&store) }
        };
        let after = |app: &App<'_>| after(app, chain, home.path(), &launch);
        let logged_in = with(&[("ANTHROPIC_API_KEY", "secret")]);
        let Some(SpawnNote::LoginOnlyHere { login, .. }) = after(&logged_in).unwrap() else {
            panic!("it is the first")
        };
        assert!(login.contains("ANTHROPIC_API_KEY"), "{login}");
        assert_eq!(after(&with(&[])).unwrap(), None);
        store.root();
        assert_eq!(after(&logged_in).unwrap(), None, "there is another chain");
    }
}

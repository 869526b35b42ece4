use std::os::unix::fs::PermissionsExt;

use tempfile::TempDir;

use super::*;
use crate::app::chains::run::testing::settings;
use crate::app::config::sources;
use crate::app::{Asker, request as requests, testing};
use crate::core::agent::reply_schema::{LARGEST_SCHEMA, ReplySchema};
use crate::core::chain::frame::Frame;
use crate::store::testing::{new, reply};
use crate::store::{self, KnownProgram, NewFrame, Store};

/// A person's directory with a `claude` in it, and a store that knows this program.
struct Place {
    temp: TempDir,
    store: Store,
    /// The notes for the person.
    notes: Vec<SpawnNote>,
}

impl Place {
    fn new() -> Self {
        let (temp, store) = store::testing::store();
        let place = Self { temp, store, notes: Vec::new() };
        place.program("claude");
        place.file("ins.md", "Do it.");
        place
    }

    fn directory(&self) -> PathBuf {
        fs::canonicalize(self.temp.path()).unwrap().join("work")
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.directory().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    fn program(&self, name: &str) -> PathBuf {
        let path = self.file(name, "#!/bin/sh\n");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let known = KnownProgram { version: "2.1.330 (Claude Code)".to_owned(), refuses_forks: false };
        self.store.remember_program(&path, program::modified(&path).unwrap(), &known).unwrap();
        path
    }

    fn app(&self) -> App<'_> {
        let path = self.directory().into_os_string();
        let variables = [("PATH", path), (SESSION, SESSION_ID.into()), ("CLAUDE_CODE_SOMETHING_NEW", "1".into())];
        App { directory: self.directory(), variables: variables.into_iter().collect(), ..testing::app(&self.store) }
    }

    /// Starts a chain with these settings in the user's file.
    fn start(&mut self, input: Input, text: &str) -> Result<Outcome, String> {
        let file = self.temp.path().join("config.toml");
        fs::write(&file, text).unwrap();
        let user = sources::user_file(&file).unwrap();
        let configuration = Configuration::resolve(user.as_ref(), None, None, None, |_| None).unwrap();
        let run = settings();
        let mut notes = Vec::new();
        let mut note = |note| notes.push(note);
        let tasks = instructions::tasks(&self.directory(), &input.tasks, &mut "typed".as_bytes());
        let started = tasks
            .map_err(AppError::from)
            .and_then(|tasks| start(&self.app(), input, tasks, &configuration, run, &mut note));
        self.notes = notes;
        started.map_err(|error| error.to_string())
    }

    fn started(&mut self, input: Input, settings: &str) -> Frame {
        let chain = self.start(input, settings).unwrap().chain;
        self.store.frame(chain).unwrap().unwrap()
    }
}

const SESSION_ID: &str = "11111111-2222-4333-8444-555555555555";

fn instructions() -> Input {
    Input { tasks: vec![GivenText::File("ins.md".into())], ..Input::default() }
}

#[test]
fn a_chain_is_recorded_as_it_was_asked_for() {
    let mut place = Place::new();
    let questions = place.directory().join("questions");
    fs::create_dir(&questions).unwrap();
    let other = place.program("other/claude");
    let input = Input {
        cwd: Some("other".into()),
        name: Some("review".parse().unwrap()),
        model: Some("opus".into()),
        permission_mode: Some("plan".into()),
        on_permission: Some(OnPermission::Ask),
        timeout: Some(60),
        questions_dir: Some("questions".into()),
        claude: Some("other/claude".into()),
        no_hooks: Some(false),
        no_stale_check: Some(true),
        args: vec!["--verbose".into()],
        limits: NewLimits { max_depth: Some(3), ..NewLimits::default() },
        ..instructions()
    };
    let outcome = place.start(input, "").unwrap();
    assert_eq!(outcome.run.claude.as_ref(), Some(&other));
    let frame = place.store.frame(outcome.chain).unwrap().unwrap();
    assert_eq!(frame.task, Task::File(place.directory().join("ins.md")));
    assert_eq!((&frame.cwd, &outcome.cwd), (&place.directory().join("other"), &frame.cwd));
    let Launch { claude, model, permission_mode, args, .. } = &frame.launch;
    assert_eq!((claude, model.as_deref(), permission_mode.as_deref()), (&other, Some("opus"), Some("plan")));
    assert_eq!(args.words(), ["--verbose"]);
    let Launch { no_hooks, no_stale_check, native_questions, on_permission, timeout, questions_dir, .. } =
        &frame.launch;
    assert_eq!((*no_hooks, *no_stale_check, *native_questions), (false, true, true));
    assert_eq!((*on_permission, *timeout), (OnPermission::Ask, Some(60)));
    assert_eq!(questions_dir.as_ref(), Some(&questions));
    assert_eq!(session(&place.app().variables), SESSION_ID.parse().ok());
    let chain = place.store.chain_of(outcome.chain).unwrap();
    assert_eq!((chain.name.as_deref(), chain.limits.max_depth), (Some("review"), 3));
    assert_eq!(place.notes, [SpawnNote::Dropped(vec!["CLAUDE_CODE_SOMETHING_NEW".to_owned()])]);
}

#[test]
fn settings_count_where_nothing_is_given() {
    const SETTINGS: &str = "[spawn]\nmodel = 'haiku'\npermission-mode = 'plan'\nno-hooks = true\nno-stale-check = true\n\
                            timeout = '2m'\nclaude-args = ['--verbose']\n[limits]\nmax-depth = 5\nmax-parallel = 2\n";
    let mut place = Place::new();
    let frame = place.started(instructions(), SETTINGS);
    let Launch { claude, model, permission_mode, no_hooks, no_stale_check, timeout, args, .. } = frame.launch;
    assert_eq!((model.as_deref(), permission_mode.as_deref()), (Some("haiku"), Some("plan")));
    assert_eq!((no_hooks, no_stale_check, timeout), (true, true, Some(120)));
    assert_eq!((claude, args.words()), (place.directory().join("claude"), vec!["--verbose".to_owned()]));
    assert_eq!(frame.cwd, place.directory());
    let limits = place.store.chain_of(frame.id).unwrap().limits;
    assert_eq!((limits.max_depth, limits.max_parallel), (5, 2));

    let given = Input {
        model: Some("opus".into()),
        permission_mode: Some("default".into()),
        no_hooks: Some(false),
        no_stale_check: Some(false),
        timeout: Some(1),
        limits: NewLimits { max_depth: Some(7), ..NewLimits::default() },
        ..instructions()
    };
    let frame = place.started(given, SETTINGS);
    let Launch { model, permission_mode, no_hooks, no_stale_check, timeout, .. } = frame.launch;
    assert_eq!((model.as_deref(), permission_mode.as_deref()), (Some("opus"), Some("default")));
    assert_eq!((no_hooks, no_stale_check, timeout), (false, false, Some(1)));
    let limits = place.store.chain_of(frame.id).unwrap().limits;
    assert_eq!((limits.max_depth, limits.max_parallel), (7, 2));
}

#[test]
fn approvals_are_not_asked_for_without_hooks() {
    let mut place = Place::new();
    let input = Input { on_permission: Some(OnPermission::Ask), no_hooks: Some(true), ..instructions() };
    let refused = place.start(input, "").unwrap_err();
    assert_eq!(refused, "--on-permission ask does not work with --no-hooks or --permission-prompt-tool");
    let denies = Input { on_permission: Some(OnPermission::Deny), no_hooks: Some(true), ..instructions() };
    assert!(place.start(denies, "[spawn]\non-permission = 'ask'\n").is_ok());
}

#[test]
fn instructions_that_need_an_approval_are_refused_unless_it_can_be_given() {
    let mut place = Place::new();
    place.file("why?.md", "Do it.");
    place.file("blank /a.md", "Do it.");
    let input = |file: &str| Input { tasks: vec![GivenText::File(file.into())], ..Input::default() };
    let blank = || input("blank /a.md");
    let outside = || Input { cwd: Some("blank ".into()), ..input("why?.md") };
    for input in [blank(), outside()] {
        let refused = place.start(input, "").unwrap_err();
        assert!(refused.starts_with("an agent would need an approval to read "), "{refused}");
    }
    place.started(input("why?.md"), "");
    place.started(Input { cwd: Some("/".into()), ..instructions() }, "");
    place.started(Input { on_permission: Some(OnPermission::Ask), ..blank() }, "");
    place.started(Input { permission_mode: Some("bypassPermissions".into()), ..outside() }, "");
}

#[test]
fn agents_work_in_a_directory() {
    let place = Place::new();
    let app = place.app();
    let at = |named: &str| working_directory(&app.directory, Some(Path::new(named))).map_err(|refusal| refusal.message);
    assert_eq!(working_directory(&app.directory, None).unwrap(), place.directory());
    fs::create_dir(place.directory().join("below")).unwrap();
    std::os::unix::fs::symlink("below", place.directory().join("link")).unwrap();
    assert_eq!(at("link"), Ok(place.directory().join("below")));
    assert_eq!(at("ins.md").unwrap_err(), "cannot work in ins.md: it is not a directory");
    assert!(at("gone").unwrap_err().starts_with("cannot work in gone: No such file"));
    fs::create_dir(place.directory().join("line\nbreak")).unwrap();
    assert!(at("line\nbreak").unwrap_err().ends_with("its path is not UTF-8 or contains a control character"));
}

#[test]
fn something_must_be_done_by_a_program_that_exists() {
    let mut place = Place::new();
    assert_eq!(place.start(Input::default(), "").unwrap_err(), "there are no instructions");
    let gone = Input { claude: Some("./gone".into()), ..instructions() };
    assert_eq!(place.start(gone, "").unwrap_err(), "there is no program at ./gone");
    let named = Input { claude: Some("claude".into()), ..instructions() };
    let outcome = place.start(named, "").unwrap();
    assert_eq!(
        (&outcome.launch.claude, outcome.run.claude),
        (&place.directory().join("claude"), Some(outcome.launch.claude.clone()))
    );
    assert!(place.start(Input { args: vec!["word".into()], ..instructions() }, "").is_err());
    let questions_dir = Some("ins.md".into());
    let refused = place.start(Input { questions_dir, ..instructions() }, "").unwrap_err();
    assert!(refused.starts_with("--questions-dir is ") && refused.ends_with("but it is not a directory"), "{refused}");
    let questions_dir = Some("to/be/made".into());
    let refused = Input { questions_dir: questions_dir.clone(), claude: Some("./gone".into()), ..instructions() };
    place.start(refused, "").unwrap_err();
    assert!(!place.directory().join("to").exists(), "a refused chain makes nothing");
    let made = place.start(Input { questions_dir, ..instructions() }, "").unwrap();
    assert!(made.launch.questions_dir.is_some_and(|dir| dir.ends_with("to/be/made") && dir.is_dir()));
}

/// An agent that is done and has a conversation to fork.
fn done(place: &Place) -> Frame {
    let launch = Launch { model: Some("sonnet".into()), ..Launch::default() };
    let chain = NewFrame { cwd: place.directory(), launch, ..new("a task") };
    let caller = place.store.start(place.store.create_root(&chain).unwrap());
    place.store.end(caller, &reply("done"));
    place.store.frame(caller.frame).unwrap().unwrap()
}

#[test]
fn a_fork_works_where_its_conversation_did_and_with_its_model() {
    let mut place = Place::new();
    let source = done(&place);
    let input = Input { fork: Some(ForkOf::Named(source.id.to_string())), ..instructions() };
    let elsewhere = Input { cwd: Some("/".into()), ..input.clone() };
    assert!(place.start(elsewhere, "").unwrap_err().starts_with("a fork of that conversation has to work in "));
    let frame = place.started(Input { cwd: Some(".".into()), ..input.clone() }, "[spawn]\nmodel = 'haiku'\n");
    assert_eq!((frame.cwd, frame.launch.model.as_deref()), (place.directory(), Some("sonnet")));
    assert_eq!(frame.baseline.and_then(|baseline| baseline.frame), Some(source.id));
    let frame = place.started(Input { model: Some("opus".into()), ..input }, "");
    assert_eq!(frame.launch.model.as_deref(), Some("opus"));
}

#[test]
fn each_agent_can_have_a_worktree() {
    let mut place = Place::new();
    let (_temp, cwd) = crate::runtime::worktrees::testing::repository();
    let input = Input { cwd: Some(cwd), ..instructions() };
    let is_apart = |frame: Frame| frame.launch.worktree.is_some();
    assert!(!is_apart(place.started(input.clone(), "")));
    assert!(is_apart(place.started(Input { worktree: Some(true), ..input.clone() }, "")));
    assert!(is_apart(place.started(input.clone(), "[spawn]\nworktree = true\n")));
    assert!(!is_apart(place.started(Input { worktree: Some(false), ..input }, "[spawn]\nworktree = true\n")));
}

#[test]
fn a_person_is_told_what_agents_could_replace() {
    let mut place = Place::new();
    let permission_mode = Some("acceptEdits".to_owned());
    let above = Input { cwd: Some("..".into()), permission_mode, ..instructions() };
    place.start(above.clone(), "").unwrap();
    assert!(matches!(place.notes[..], [SpawnNote::Reach { .. }, SpawnNote::Dropped(_)]), "{:?}", place.notes);
}

/// The request of an agent that works in the place.
fn asked(place: &Place, input: Input) -> Result<(SpawnRequest, Overrides), String> {
    let launch = Launch { permission_mode: Some("acceptEdits".into()), ..Launch::default() };
    let frame = NewFrame { cwd: place.directory(), launch, ..new("a task") };
    let caller = place.store.start(place.store.create_root(&frame).unwrap());
    let printed = place.store.dir().output(caller.frame);
    fs::create_dir_all(printed.parent().unwrap()).unwrap();
    fs::write(printed, "").unwrap();
    let app = App { asker: Asker { agent: Some(caller), ..Asker::default() }, ..place.app() };
    let input = requests::Input::Spawn(Box::new(input));
    match requests::resolve(&app, input, &mut "typed".as_bytes()) {
        Ok((by, AgentRequest::Spawn(request, overrides))) if by == caller => Ok((*request, overrides)),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn an_agent_asks_for_others_with_overrides() {
    let place = Place::new();
    let input = Input {
        tasks: vec![GivenText::StandardInput, GivenText::Text("Check it.".into())],
        worktree: Some(true),
        model: Some("opus".into()),
        permission_mode: Some("plan".into()),
        on_permission: Some(OnPermission::Deny),
        schema: Some("schema.json".into()),
        timeout: Some(60),
        args: vec!["--verbose".into()],
        ..Input::default()
    };
    place.file("schema.json", "\u{feff}{\"type\": \"object\"}\n");
    let (request, overrides) = asked(&place, input).unwrap();
    let tasks: Vec<_> = request.tasks.iter().map(|named| named.task.clone()).collect();
    assert_eq!(tasks, [Task::Prompt("typed".into()), Task::Prompt("Check it.".into())]);
    assert_eq!((request.cwd, request.apart, request.source), (place.directory(), true, None));
    let expected = Overrides {
        model: Some("opus".into()),
        permission_mode: Some("plan".into()),
        on_permission: Some(OnPermission::Deny),
        native_agents: None,
        args: options::parse(&["--verbose"]).unwrap(),
        timeout: Some(60),
        schema: ReplySchema::from_text("{\"type\": \"object\"}").ok(),
    };
    assert_eq!(overrides, expected);
    assert!(!asked(&place, instructions()).unwrap().0.apart);
}

#[test]
fn what_belongs_to_the_chain_is_refused_to_agents() {
    let place = Place::new();
    let refused = |input| asked(&place, input).unwrap_err();
    let limits = NewLimits { max_agents: Some(1), ..NewLimits::default() };
    let options = "agents cannot use --no-hooks, --no-stale-check or --claude";
    for (input, why) in [
        (Input { limits, ..instructions() }, "agents cannot set limits (--max-…, --stall-after)"),
        (Input { claude: Some("claude".into()), ..instructions() }, options),
        (Input { no_hooks: Some(true), ..instructions() }, options),
        (Input { no_stale_check: Some(false), ..instructions() }, options),
        (Input { questions_dir: Some("q".into()), ..instructions() }, "agents cannot use --questions-dir"),
        (Input { name: Some("review".parse().unwrap()), ..instructions() }, "agents cannot name chains"),
        (
            Input { form: SpawnForm::Handoff, worktree: Some(true), ..instructions() },
            "--handoff does not work with --worktree: the reply would not say where the work is",
        ),
    ] {
        assert_eq!(refused(input), why);
    }
    let foreign = Input { fork: Some(ForkOf::Named(done(&place).id.to_string())), ..instructions() };
    assert!(refused(foreign).starts_with("no agent or session of this chain matches "));
}

#[test]
fn a_fork_that_would_miss_the_cache_is_refused_unless_it_may() {
    let place = Place::new();
    let fork = |cold| Some(ForkOf::Asker { cold });
    for changes in [
        Input { model: Some("opus".into()), ..instructions() },
        Input { args: vec!["--verbose".into()], ..instructions() },
    ] {
        let refused = asked(&place, Input { fork: fork(false), ..changes.clone() }).unwrap_err();
        assert!(refused.contains("would not share the caller's prompt cache"), "{refused}");
        assert!(asked(&place, Input { fork: fork(true), ..changes }).is_ok());
    }
    assert!(asked(&place, Input { fork: fork(false), ..instructions() }).is_ok());
}

#[test]
fn only_agents_fork_and_hand_off() {
    for (input, why) in [
        (Input { fork: Some(ForkOf::Asker { cold: false }), ..instructions() }, "only an agent can fork"),
        (Input { form: SpawnForm::Handoff, ..instructions() }, "only an agent can hand off"),
        (Input { form: SpawnForm::Background, ..instructions() }, "only an agent has a background"),
    ] {
        let refused = Place::new().start(input, "").unwrap_err();
        assert!(refused.starts_with(why), "{refused}");
    }
}

#[test]
fn a_schema_is_a_file_of_the_agent_with_json_that_can_be_used() {
    let mut place = Place::new();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("secret.json"), "{\"key\": \"s3cret\"}").unwrap();
    let files = [
        ("text.json", "yes".to_owned()),
        ("type.json", "{\"type\": \"text\"}".to_owned()),
        ("remote.json", "{\"$ref\": \"file:///etc/passwd\"}".to_owned()),
        ("large.json", format!("{{\"title\": \"{}\"}}", "x".repeat(LARGEST_SCHEMA))),
    ];
    files.iter().for_each(|(name, content)| drop(place.file(name, content)));
    std::os::unix::fs::symlink(elsewhere.path().join("secret.json"), place.directory().join("link.json")).unwrap();
    let input = |name: &str| Input { schema: Some(name.into()), ..instructions() };
    for (name, why) in [
        ("text.json", "text.json is not JSON: "),
        ("type.json", "type.json cannot be used as a JSON Schema: /type: "),
        (
            "remote.json",
            "remote.json cannot be used as a JSON Schema: it refers to file:///etc/passwd, and nothing is fetched",
        ),
        ("large.json", "large.json has more than 64 KiB"),
        ("gone.json", "cannot read gone.json: "),
        (".", ". is not a regular file"),
        ("/dev/zero", "/dev/zero is not a regular file"),
    ] {
        let refused = place.start(input(name), "").unwrap_err();
        assert!(refused.starts_with(why), "{name}: {refused}");
    }
    assert!(place.start(input("link.json"), "").is_ok(), "a person may name any file");
    let refused = asked(&place, input("link.json")).unwrap_err();
    assert_eq!(refused, "link.json is outside your directory, so it cannot be given to another agent");
}

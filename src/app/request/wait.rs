//! Lets an agent wait for something outside the chain.

use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};

use crate::app::App;
use crate::app::error::{AppError, Refusal};
use crate::core::text::time::TOO_FAR;
use crate::core::waits::conditions::{
    self, AwaitedAgent, External, LONGEST_COMMAND, MOST_CONDITIONS, Matching, Polled,
};
use crate::runtime::requests::agent_lookup;
use crate::runtime::requests::agent_request::AgentRequest;
use crate::runtime::run::external_waits;
use crate::store::Caller;

#[derive(Clone, Debug, Default)]
pub(crate) struct Input {
    pub(crate) files: Vec<AwaitedFile>,
    pub(crate) until: Option<Timestamp>,
    pub(crate) duration: Option<SignedDuration>,
    /// Shell commands to wait for, until they exit with status 0.
    pub(crate) commands: Vec<String>,
    /// The shortest interval between two runs of a command.
    pub(crate) every: Option<SignedDuration>,
    /// How long a command may take each time.
    pub(crate) timeout_per_run: Option<SignedDuration>,
    /// Ids or tasks of agents.
    pub(crate) agents: Vec<String>,
    /// How many of several conditions must be met.
    pub(crate) quantity: Option<Quantity>,
}

#[derive(Clone, Debug)]
pub(crate) struct AwaitedFile {
    pub(crate) path: PathBuf,
    /// A regular expression that must match its content.
    pub(crate) pattern: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quantity {
    Any,
    All,
}

/// Builds the caller's request. Writes nothing.
pub(super) fn request(app: &App<'_>, caller: Caller, input: Input) -> Result<AgentRequest, AppError> {
    let quantity = input.quantity;
    let mut conditions = conditions(app, caller, input)?;
    if conditions.len() > MOST_CONDITIONS {
        return Err(Refusal::new(format!("at most {MOST_CONDITIONS} conditions can be waited for at once")).into());
    }
    let wait = match quantity {
        _ if conditions.len() < 2 => conditions.pop(),
        Some(Quantity::Any) => Some(External::Any(conditions)),
        Some(Quantity::All) => Some(External::All(conditions)),
        None => {
            return Err(Refusal::new("there are several conditions")
                .hint("add --any to wait for the first of them, or --all to wait for all of them")
                .into());
        }
    };
    wait.map(AgentRequest::Wait).ok_or_else(|| Refusal::new("there is nothing to wait for").into())
}

fn conditions(app: &App<'_>, caller: Caller, input: Input) -> Result<Vec<External>, AppError> {
    let mut conditions = files(app, caller, input.files)?;
    conditions.extend(input.until.map(External::Time));
    if let Some(duration) = input.duration {
        let until = app.now.checked_add(duration);
        let until = until.map_err(|_| Refusal::new(format!("--for: the end of the wait is {TOO_FAR}")))?;
        conditions.push(External::Time(until));
    }
    let (every, timeout) = intervals(input.every, input.timeout_per_run)?;
    conditions.extend(input.commands.into_iter().map(|command| match (every, timeout) {
        (None, None) => External::Command(command),
        (every, timeout) => External::Polled(Polled { command, every, timeout }),
    }));
    for named in &input.agents {
        let agent = agent_lookup::to_wait_for(app.store, caller, named)?;
        conditions.push(External::Agent(AwaitedAgent { id: agent.id, task: agent.task.title() }));
    }
    Ok(conditions)
}

fn files(app: &App<'_>, caller: Caller, awaited: Vec<AwaitedFile>) -> Result<Vec<External>, AppError> {
    for pattern in awaited.iter().filter_map(|file| file.pattern.as_ref()) {
        conditions::compiled(pattern)
            .map_err(|error| Refusal::new(format!("`{pattern}` is not a valid regular expression: {error}")))?;
    }
    let mut conditions = Vec::new();
    for AwaitedFile { path, pattern } in awaited {
        let file = absolute(app, &path)?;
        conditions.push(match pattern {
            None => External::File(file),
            Some(pattern) => {
                let within = agent_lookup::reads_only_in(app.store, caller)?;
                check_is_within(&file, within.as_deref())?;
                External::Matching(Matching { file, pattern, within })
            }
        });
    }
    Ok(conditions)
}

/// The interval and the time limit of commands, in seconds.
fn intervals(
    every: Option<SignedDuration>,
    timeout_per_run: Option<SignedDuration>,
) -> Result<(Option<u64>, Option<u64>), Refusal> {
    let seconds = |name: &str, duration: Option<SignedDuration>| match duration.map(|duration| duration.as_secs()) {
        None => Ok(None),
        Some(seconds @ 1..) => Ok(u64::try_from(seconds).ok()),
        Some(_) => Err(Refusal::new(format!("{name} is shorter than a second"))),
    };
    let timeout = seconds("--timeout-per-run", timeout_per_run)?;
    if timeout.is_some_and(|timeout| timeout > LONGEST_COMMAND.as_secs()) {
        return Err(Refusal::new("--timeout-per-run is longer than 10 minutes")
            .hint("run longer commands in the background, and wait for a file that they write"));
    }
    Ok((seconds("--every", every)?, timeout))
}

fn absolute(app: &App<'_>, file: &Path) -> Result<PathBuf, Refusal> {
    let file = std::path::absolute(app.path(file))
        .map_err(|error| Refusal::new(format!("cannot wait for that file: {error}")))?;
    if file.to_str().is_none() {
        return Err(Refusal::new("cannot wait for that file: its path is not UTF-8"));
    }
    Ok(file)
}

/// Refuses to match a file that the agent may not read without asking. Links are resolved again at each check.
fn check_is_within(file: &Path, within: Option<&Path>) -> Result<(), Refusal> {
    match within {
        Some(within) if !external_waits::is_within(file, within) => Err(Refusal::new(format!(
            "only files in {} can be matched, and {} is elsewhere",
            within.display(),
            file.display()
        ))
        .hint("wait for the file without --matches, or with --command, which needs a permission")),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt;

    use super::*;
    use crate::app::testing;
    use crate::core::agent::launch::Launch;
    use crate::store::testing::new;
    use crate::store::{self, NewFrame, Store};

    /// Returns the conditions for an agent that works in `/srv`, and makes this call in `/srv/below`.
    fn waited(store: &Store, caller: Caller, input: Input) -> Result<External, String> {
        let app = App { directory: "/srv/below".into(), now: Timestamp::UNIX_EPOCH, ..testing::app(store) };
        match request(&app, caller, input) {
            Ok(AgentRequest::Wait(wait)) => Ok(wait),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    fn file(path: &str) -> AwaitedFile {
        AwaitedFile { path: path.into(), pattern: None }
    }

    fn files(paths: &[&str]) -> Input {
        Input { files: paths.iter().map(|path| file(path)).collect(), ..Input::default() }
    }

    fn at(second: i64) -> External {
        External::Time(Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn one_condition_is_waited_for_as_it_is() {
        let (_temp, store) = store::testing::store();
        let caller = store.start(store.root());
        let wait = |input| waited(&store, caller, input);
        assert_eq!(wait(files(&["./a"])), Ok(External::File("/srv/below/a".into())));
        assert_eq!(wait(files(&["/tmp/a"])), Ok(External::File("/tmp/a".into())));
        let timed = |seconds| Input { duration: Some(SignedDuration::from_secs(seconds)), ..Input::default() };
        assert_eq!(wait(timed(90)), Ok(at(90)));
        assert!(wait(timed(i64::MAX)).unwrap_err().starts_with("--for: the end of the wait is "));
        assert_eq!(wait(Input { until: Timestamp::from_second(5).ok(), ..Input::default() }), Ok(at(5)));
        assert_eq!(wait(Input { quantity: Some(Quantity::Any), ..timed(90) }), Ok(at(90)));
        assert_eq!(wait(Input::default()).unwrap_err(), "there is nothing to wait for");
        let bytes = AwaitedFile { path: OsStr::from_bytes(b"\xff").into(), pattern: None };
        let refused = wait(Input { files: vec![bytes], ..Input::default() }).unwrap_err();
        assert_eq!(refused, "cannot wait for that file: its path is not UTF-8");
    }

    #[test]
    fn several_conditions_are_waited_for_in_one_of_two_ways() {
        let (_temp, store) = store::testing::store();
        let caller = store.start(store.root());
        let both = || vec![External::File("/a".into()), at(5)];
        let wait = |quantity| {
            let input = Input { until: Timestamp::from_second(5).ok(), quantity, ..files(&["/a"]) };
            waited(&store, caller, input)
        };
        assert_eq!(wait(Some(Quantity::Any)), Ok(External::Any(both())));
        assert_eq!(wait(Some(Quantity::All)), Ok(External::All(both())));
        assert_eq!(wait(None).unwrap_err(), "there are several conditions");
        let many = |count| {
            let files = vec![file("/a"); count];
            waited(&store, caller, Input { files, quantity: Some(Quantity::All), ..Input::default() })
        };
        assert!(many(MOST_CONDITIONS).is_ok());
        assert_eq!(many(MOST_CONDITIONS + 1).unwrap_err(), "at most 20 conditions can be waited for at once");
    }

    #[test]
    fn commands_have_an_interval_and_a_time_limit() {
        let (_temp, store) = store::testing::store();
        let caller = store.start(store.root());
        let command = || "true".to_owned();
        let wait = |every: Option<SignedDuration>, timeout_per_run: Option<SignedDuration>| {
            let input = Input { commands: vec![command()], every, timeout_per_run, ..Input::default() };
            waited(&store, caller, input)
        };
        let seconds = |seconds| Some(SignedDuration::from_secs(seconds));
        assert_eq!(wait(None, None), Ok(External::Command(command())));
        let polled = |every, timeout| Ok(External::Polled(Polled { command: command(), every, timeout }));
        assert_eq!(wait(seconds(1), None), polled(Some(1), None));
        assert_eq!(wait(None, seconds(600)), polled(None, Some(600)));
        let short = Some(SignedDuration::from_millis(999));
        assert_eq!(wait(short, None).unwrap_err(), "--every is shorter than a second");
        assert_eq!(wait(None, short).unwrap_err(), "--timeout-per-run is shorter than a second");
        assert_eq!(wait(None, seconds(601)).unwrap_err(), "--timeout-per-run is longer than 10 minutes");
    }

    #[test]
    fn only_files_that_the_agent_may_read_are_matched() {
        let (_temp, store) = store::testing::store();
        let work = tempfile::tempdir().unwrap();
        let cwd = fs::canonicalize(work.path()).unwrap();
        let agent = |mode: &str| {
            let launch = Launch { permission_mode: Some(mode.to_owned()), ..Launch::default() };
            store.start(store.create_root(&NewFrame { cwd: cwd.clone(), launch, ..new("a task") }).unwrap())
        };
        let matched = |caller, path: PathBuf, pattern: &str| {
            let pattern = Some(pattern.to_owned());
            waited(&store, caller, Input { files: vec![AwaitedFile { path, pattern }], ..Input::default() })
        };
        let expected = |file: PathBuf, within| Ok(External::Matching(Matching { file, pattern: "^ok".into(), within }));
        let (limited, free) = (agent("acceptEdits"), agent("bypassPermissions"));
        let inside = cwd.join("log");
        assert_eq!(matched(limited, inside.clone(), "^ok"), expected(inside, Some(cwd.clone())));
        let refused = matched(limited, "/etc/passwd".into(), "^ok").unwrap_err();
        assert!(refused.starts_with("only files in ") && refused.ends_with("/etc/passwd is elsewhere"), "{refused}");
        assert_eq!(matched(free, "/etc/passwd".into(), "^ok"), expected("/etc/passwd".into(), None));
        assert!(matched(free, "/etc/passwd".into(), "(").unwrap_err().starts_with("`(` is not a valid regular "));
    }

    #[test]
    fn an_agent_is_named_by_its_task() {
        let (_temp, store) = store::testing::store();
        let caller = store.start(store.root());
        let (_, child) = store.request_child(caller, None, &new("tests.md"), "tests.md").unwrap();
        let wait = |name: &str| waited(&store, caller, Input { agents: vec![name.to_owned()], ..Input::default() });
        assert_eq!(wait("tests.md"), Ok(External::Agent(AwaitedAgent { id: child, task: "tests.md".into() })));
        assert_eq!(wait("other.md").unwrap_err(), "no agent or question matches `other.md`");
    }
}

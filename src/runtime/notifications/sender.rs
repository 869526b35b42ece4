//! Sends notifications in a separate thread while a command works: neither a slow command nor a slow disk delays a chain.

use std::future::{Future, pending};
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::core::notifications::event_commands;
use crate::core::notifications::occasion::Occasion;
use crate::core::notifications::payload::{AskedQuestion, Payload};
use crate::runtime::block_on;
use crate::runtime::notifications::config_file::ConfigFile;
use crate::runtime::notifications::reload::{self, News, ReadConfig, Reload};
use crate::runtime::notifications::run_command::{self, Shell};
use crate::runtime::notifications::stalls::Silences;
use crate::runtime::run::signals;
use crate::runtime::run::unattended::change_watch::ChangeWatch;
use crate::store::{Claimed, Notifications, SendOutcome, Serving, Store, StoreError, Subscribing, Subscription};

/// How many commands run at once.
const AT_ONCE: usize = 8;
/// How much longer than its command a claim lasts, because its end must be recorded.
const SLACK: Duration = Duration::from_secs(10);
/// The shortest wait between two checks for what is due.
const SHORTEST: Duration = Duration::from_millis(20);
/// The longest wait between two checks: a clock can be set, and a machine can sleep.
const TICK: Duration = Duration::from_secs(60);
/// The interval between checks for silent agents.
const STALL_LOOK: Duration = Duration::from_secs(5);
/// A longer wait is explained.
const SHORT: Duration = Duration::from_secs(1);

/// Sends notifications until it is asked to finish.
#[derive(Debug)]
pub(crate) struct Sender {
    finish: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

/// Which commands are run, and how.
struct Commands {
    config: ConfigFile,
    shell: Shell,
    voice: Voice,
}

/// Prints to the person at the terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Voice {
    pub tell: fn(&str),
    pub warn: fn(&str),
    pub hint: fn(&str),
}

/// The commands, and where changes to them come from.
struct SenderConfig {
    commands: Arc<Commands>,
    /// `None`: it never changes.
    reload: Option<Reload>,
}

impl SenderConfig {
    /// Loads the config file again if it has changed. A file that cannot be used is reported, and the previous one remains in
    /// effect. Returns whether to check again soon.
    fn renew(&mut self, store: &Store) -> Result<bool, StoreError> {
        let Some(reload) = &mut self.reload else { return Ok(false) };
        let config = match reload.look() {
            News::Nothing => return Ok(false),
            News::Soon => return Ok(true),
            News::Changed(config) => config,
        };
        let Commands { shell, voice, .. } = &*self.commands;
        match config {
            Ok(config) => {
                subscribe(store, &config)?;
                for problem in &config.problems {
                    (voice.warn)(&format!("{}: {problem}", config.path.display()));
                }
                let shell = self::shell(&shell.state_dir, &config, &shell.own_program);
                self.commands = Arc::new(Commands { config, shell, voice: *voice });
            }
            Err(error) => {
                (voice.warn)(&error.to_string());
                (voice.hint)(&error.hint);
            }
        }
        Ok(false)
    }
}

/// Subscribes to the events in `config`. If there are none, a subscription of another config file remains.
fn subscribe(store: &Store, config: &ConfigFile) -> Result<(), StoreError> {
    let events: Vec<Occasion> = config.commands.of.keys().copied().collect();
    let config = config.path.clone();
    store.outbox().subscribe(&if events.is_empty() {
        Subscribing::NoLonger(config)
    } else {
        Subscribing::To(Subscription { config, events })
    })
}

impl Commands {
    fn could_not(&self, error: &StoreError) {
        (self.voice.warn)(&format!("notifications are not sent for now: {error}"));
    }

    /// How long a claim lasts if its outcome is not recorded.
    fn claim_lasts(&self) -> SignedDuration {
        SignedDuration::try_from(self.shell.timeout + SLACK).unwrap_or(SignedDuration::MAX)
    }
}

impl Sender {
    /// Subscribes to the events in `config`, and starts to send.
    pub(crate) fn start(
        store: &Store,
        config: ConfigFile,
        own_program: &Path,
        voice: Voice,
    ) -> Result<Self, StoreError> {
        subscribe(store, &config)?;
        Ok(Self::with(store.dir().path(), means(store, config, own_program, voice)))
    }

    /// Like [`Self::start`], with the config file at `path`, whose changes take effect.
    pub(crate) fn follow(
        store: &Store,
        path: PathBuf,
        read_config: ReadConfig,
        own_program: &Path,
        voice: Voice,
    ) -> Result<Self, StoreError> {
        let none =
            ConfigFile { path: path.clone(), commands: event_commands::EventCommands::default(), problems: Vec::new() };
        let reload = Some(Reload::new(path, read_config));
        let mut means = SenderConfig { reload, ..means(store, none, own_program, voice) };
        means.renew(store)?;
        Ok(Self::with(store.dir().path(), means))
    }

    fn with(dir: &Path, mut means: SenderConfig) -> Self {
        let (finish, finishing) = watch::channel(false);
        let dir = dir.to_owned();
        let thread = thread::spawn(move || {
            if let Err(error) = run(&dir, &mut means, finishing) {
                means.commands.could_not(&error);
            }
        });
        Self { finish, thread }
    }

    /// Sends all due notifications, and returns when that is done, but not later than the timeout of a command.
    pub(crate) fn finish(self) {
        // Without a receiver, the thread has ended.
        let _ = self.finish.send(true);
        let _ = self.thread.join();
    }
}

fn means(store: &Store, config: ConfigFile, own_program: &Path, voice: Voice) -> SenderConfig {
    let shell = shell(store.dir().path(), &config, own_program);
    SenderConfig { commands: Arc::new(Commands { config, shell, voice }), reload: None }
}

fn run(dir: &Path, means: &mut SenderConfig, finishing: watch::Receiver<bool>) -> Result<(), StoreError> {
    let ran = block_on(async {
        let mut finishing = finishing;
        let store = loop {
            match Store::open(dir) {
                Ok(store) => break store,
                Err(error) => means.commands.could_not(&error),
            }
            if tokio::time::timeout(TICK, finishing.wait_for(|finish| *finish)).await.is_ok() {
                return;
            }
        };
        // The error may be temporary.
        while let Err(error) = send(&store, means, finishing.clone()).await {
            means.commands.could_not(&error);
            if tokio::time::timeout(TICK, finishing.wait_for(|finish| *finish)).await.is_ok() {
                break;
            }
        }
    });
    ran.map_err(|error| StoreError::io(dir, error))
}

async fn send(store: &Store, means: &mut SenderConfig, mut finishing: watch::Receiver<bool>) -> Result<(), StoreError> {
    let mut changes = ChangeWatch::new(store);
    let mut silences = Silences::default();
    let mut running = FuturesUnordered::new();
    let mut sending: Vec<Claimed> = Vec::new();
    let (mut is_last, mut over): (bool, Pin<Box<dyn Future<Output = ()>>>) = (false, Box::pin(pending()));
    loop {
        if *finishing.borrow() && !is_last {
            (is_last, over) = (true, Box::pin(is_over(Arc::clone(&means.commands))));
        }
        let is_changing = !is_last && means.renew(store)?;
        if let Some(reload) = &means.reload {
            changes.watch_for(store.dir(), &reload.places());
        }
        let commands = &means.commands;
        if !is_last && commands.config.commands.of.contains_key(&Occasion::Stalled) {
            silences.note(store, Timestamp::now())?;
        }
        while running.len() < AT_ONCE
            && let Some(claimed) = store.outbox().claim(commands.claim_lasts())?
        {
            let payload = payload(store, &claimed)?;
            sending.push(claimed.clone());
            running.push(one(Arc::clone(commands), claimed, payload));
        }
        if is_last && running.is_empty() {
            return Ok(());
        }
        let rest = if is_changing { reload::DEBOUNCE } else { until_next(store, commands)? };
        tokio::select! {
            Some((claimed, outcome)) = running.next(), if !running.is_empty() => {
                sending.retain(|other| *other != claimed);
                ended(store, commands, &claimed, &outcome)?;
            }
            // The process that the sender belongs to says what is wrong with the records.
            _ = changes.next(store), if !is_last => {}
            () = sleep(rest), if !is_last => {}
            _ = finishing.wait_for(|finish| *finish), if !is_last => {}
            () = &mut over => break,
        }
    }
    // This ends commands that are still running. The next process sends their notifications.
    drop(running);
    sending.iter().try_for_each(|claimed| store.outbox().end(claimed, SendOutcome::GivenBack).map(drop))
}

/// Runs one command. If this is dropped, its claim expires.
async fn one(commands: Arc<Commands>, claimed: Claimed, payload: Payload) -> (Claimed, Result<(), String>) {
    let Some(command) = commands.config.commands.of.get(&claimed.about.event) else {
        return (claimed, Err("the config file has no command for it any more".to_owned()));
    };
    let outcome = run_command::run(&commands.shell, command, &payload).await;
    (claimed, outcome)
}

fn ended(
    store: &Store,
    commands: &Commands,
    claimed: &Claimed,
    outcome: &Result<(), String>,
) -> Result<(), StoreError> {
    if let Err(why) = outcome {
        let (event, chain) = (claimed.about.event.name(), claimed.about.chain.id.short());
        (commands.voice.warn)(&format!("{chain}: a notification of {event} was not sent: {why}"));
    }
    store
        .outbox()
        .end(claimed, outcome.as_ref().map_or_else(|why| SendOutcome::Failed(why), |()| SendOutcome::Sent))?;
    Ok(())
}

fn payload(store: &Store, claimed: &Claimed) -> Result<Payload, StoreError> {
    let question =
        claimed.request.map(|request| store.questions(request, false)).transpose()?.unwrap_or_default().pop();
    let asked = question.map(|question| AskedQuestion { id: question.id, asked: question.asked, kind: question.kind });
    let is_done = claimed.about.event == Occasion::Done;
    let reply = if is_done { store.replies(claimed.about.agent.id)?.reply } else { None };
    let payload = Payload::new(claimed.about.clone(), asked, reply);
    // A notification is sent even if the address of the page cannot be determined.
    Ok(match Serving::address(store.dir()) {
        Ok(Some(address)) => payload.on_page(&address),
        _ => payload,
    })
}

fn until_next(store: &Store, commands: &Commands) -> Result<Duration, StoreError> {
    let stalls = commands.config.commands.of.contains_key(&Occasion::Stalled);
    let most = if stalls { STALL_LOOK } else { TICK };
    let next = store.outbox().list(Notifications::NextDue)?.pop();
    let next = next.map(|next| next.due.duration_since(Timestamp::now()));
    // Notifications that are due but were not claimed wait for another command to end.
    let next = next.map(|next| Duration::try_from(next).unwrap_or(SHORT).max(SHORTEST));
    Ok(next.map_or(most, |next| next.min(most)))
}

/// Returns when there is no more time to run commands, or a person does not want to wait.
async fn is_over(commands: Arc<Commands>) {
    let wait = async {
        sleep(SHORT).await;
        (commands.voice.tell)("waiting for the commands of notifications; Ctrl-C leaves them to the next command");
        // Commands that hang have used up their own time before.
        sleep(commands.shell.timeout).await;
    };
    tokio::select! {
        () = wait => {}
        () = interrupted(signals::listen()) => {}
    }
}

async fn interrupted(listening: io::Result<watch::Receiver<signals::Signals>>) {
    match listening {
        Ok(mut stop) => drop(stop.wait_for(|signals| signals.any()).await),
        Err(_) => pending().await,
    }
}

/// Runs the command for an event with an example, outside the outbox; `None`: there is no command.
pub(crate) fn try_out(
    state_dir: &Path,
    config: &ConfigFile,
    own_program: &Path,
    event: Occasion,
) -> Option<Result<(), String>> {
    let command = config.commands.of.get(&event)?;
    let shell = shell(state_dir, config, own_program);
    let payload = Payload::example(event, Timestamp::now());
    Some(block_on(run_command::run(&shell, command, &payload)).unwrap_or_else(|error| Err(error.to_string())))
}

fn shell(state_dir: &Path, config: &ConfigFile, own_program: &Path) -> Shell {
    Shell {
        cwd: config.folder(),
        state_dir: state_dir.to_owned(),
        own_program: own_program.to_owned(),
        timeout: config.commands.timeout,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use super::*;
    use crate::store::testing;

    static WARNED: Mutex<Vec<String>> = Mutex::new(Vec::new());
    const VOICE: Voice =
        Voice { tell: |_| {}, warn: |said| WARNED.lock().unwrap().push(said.to_owned()), hint: |_| {} };

    fn config(path: &str, events: &[Occasion]) -> ConfigFile {
        let of: BTreeMap<_, _> = events.iter().map(|event| (*event, "notify-send".to_owned())).collect();
        let commands = event_commands::EventCommands { of, ..event_commands::EventCommands::default() };
        ConfigFile { path: path.into(), commands, problems: Vec::new() }
    }

    #[test]
    fn a_claim_outlasts_the_command_that_it_is_for() {
        let (_temp, store) = testing::store();
        let commands =
            means(&store, config("/home/me/config.toml", &[]), Path::new("/usr/bin/agent-cli"), VOICE).commands;
        assert!(commands.claim_lasts() > SignedDuration::try_from(commands.shell.timeout).unwrap());
        commands.could_not(&StoreError::Unknown("4f2c".to_owned()));
        let warned = WARNED.lock().unwrap();
        assert!(warned.len() == 1 && warned[0].starts_with("notifications are not sent for now: "), "{warned:?}");
    }

    #[test]
    fn a_config_file_without_commands_ends_only_what_it_began_itself() {
        let (_temp, store) = testing::store();
        let noted = || store.outbox().subscription().unwrap().map(|it| (it.config, it.events));
        let say = |path: &str, events: &[Occasion]| subscribe(&store, &config(path, events)).unwrap();
        assert_eq!(noted(), None);
        say("/home/me/config.toml", &[Occasion::Done]);
        let mine = Some(("/home/me/config.toml".into(), vec![Occasion::Done]));
        assert_eq!(noted(), mine);
        say("/home/other/config.toml", &[]);
        assert_eq!(noted(), mine);
        say("/home/me/config.toml", &[]);
        assert_eq!(noted(), None);
    }
}

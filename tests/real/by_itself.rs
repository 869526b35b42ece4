//! Chains that no person resumes: `watch`, cron or the timer of `service install` continues them, over days and over a reboot.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::chain::{Chain, Said};
use crate::processes::{Background, wait_until};
use crate::support::{
    Conversation, Hold, MessagesApi, Turn, on_every_version_before_a_release, on_every_version_of_a_whole_run,
    processes_of, write_executable,
};

on_every_version_before_a_release!(the_timer_needs_no_hand_after_a_reboot, watch_continues_three_people_over_days);

on_every_version_of_a_whole_run!(cron_continues_three_people_over_days, the_timer_continues_three_people_over_days);

/// The answers of each person. The first and the last must arrive to the byte.
const ANN: &str = "on \u{201e}Jan 1st\u{201c},\n\t  $(date) 'or' \"so\" \\ – 日本 ";
const BOB: &str = "Lemon";
const CID: &str = "deny: not `there`, $HOME\n  but here ";
const LONG_WAIT: &str = "agent-cli wait --for 3d";

/// The root starts a middle agent, which starts three at once. Each of them asks one person in another way.
fn party(said: &Conversation) -> Turn {
    let (task, results) = (said.task(), said.result_texts());
    let is = |name: &str| task.contains(&format!("/{name}.md"));
    match *results {
        [] if is("root") => Turn::bash("agent-cli spawn middle.md"),
        [] if is("middle") => Turn::bash("agent-cli spawn ann.md bob.md cid.md"),
        [] if is("ann") => Turn::bash("agent-cli ask 'When?'"),
        [_] if is("ann") => Turn::bash(LONG_WAIT),
        [answer, _, ..] if is("ann") => Turn::text(json!(answer).to_string()),
        [] if is("bob") => Turn::call(
            "AskUserQuestion",
            json!({"questions": [{
                "question": "Which cake?", "header": "Cake", "multiSelect": false,
                "options": [{"label": "Apple", "description": "a"}, {"label": BOB, "description": "b"}],
            }]}),
        ),
        [] if is("cid") => Turn::bash("touch there"),
        [.., last] => Turn::text(last),
        [] => Turn::text("nobody has asked me for anything"),
    }
}

/// A chain whose login and API are in the settings, where processes that are started without a shell find them.
fn ready_for_anything(version: &str, model: impl Fn(&Conversation) -> Turn + Send + Sync + 'static) -> Chain {
    let chain = Chain::with_model(version, MessagesApi::start(model));
    let env = json!({
        "ANTHROPIC_BASE_URL": chain.api.url(),
        "ANTHROPIC_API_KEY": "dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    });
    let folder = chain.home.home().join(".claude");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("settings.json"), json!({"env": env}).to_string()).unwrap();
    for name in ["root", "middle", "ann", "bob", "cid"] {
        chain.home.write(&format!("{name}.md"), "Do what the model does.\n");
    }
    chain
}

/// Who continues the chain.
enum Driver {
    Watch(Background),
    /// The command that cron or the timer runs every minute, in their environment. A test decides when a minute has passed.
    EveryMinute(Box<dyn Fn() -> Command>),
}

impl Driver {
    fn watch(chain: &Chain) -> Self {
        Self::Watch(chain.start(&["watch"]))
    }

    fn cron(chain: &Chain) -> Self {
        let home = chain.home.home().to_owned();
        let program = env!("CARGO_BIN_EXE_agent-cli");
        let line =
            format!("AGENT_CLI_STATE_DIR={} {program} resume --all >> {0}/../chains.log 2>&1", chain.state().display());
        Self::EveryMinute(Box::new(move || {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", &line]).current_dir(&home).env_clear().env("HOME", &home);
            shell.envs([("LOGNAME", "ann"), ("PATH", "/usr/bin:/bin"), ("SHELL", "/bin/sh")]);
            shell
        }))
    }

    /// The unit that `service install` writes, run as systemd would. `systemctl` is a stand-in.
    fn timer(chain: &Chain) -> Self {
        let bin = chain.home.home().join("bin");
        for name in ["systemctl", "loginctl"] {
            write_executable(&bin.join(name), "#!/bin/sh\nexit 0\n");
        }
        let mut install = chain.command();
        install.args(["service", "install"]).env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        let said = Said::from(install.output().unwrap());
        assert_eq!(said.code, Some(0), "{said:?}");
        let home = chain.home.home().to_owned();
        let unit = fs::read_to_string(home.join(".config/systemd/user/agent-cli.service")).unwrap();
        let value = |key: &str| unit.lines().find_map(|line| line.strip_prefix(key)).unwrap().to_owned();
        let state = value("Environment=").trim_matches('"').split_once('=').unwrap().1.to_owned();
        let variables = fs::read_to_string(value("EnvironmentFile=-")).unwrap();
        let started = value("ExecStart=");
        Self::EveryMinute(Box::new(move || {
            let words = started.split(' ').map(|word| word.trim_matches('"')).collect::<Vec<_>>();
            let mut service = Command::new(words[0]);
            service.args(&words[1..]).current_dir("/").env_clear().env("HOME", &home);
            service.env("PATH", "/usr/bin:/bin").env("AGENT_CLI_STATE_DIR", &state);
            let assigned = variables.lines().filter(|line| !line.starts_with('#'));
            service.envs(
                assigned.filter_map(|line| line.split_once('=')).map(|(name, value)| (name, value.trim_matches('"'))),
            );
            service
        }))
    }

    /// Continues the chain until `happened`; otherwise a minute passes.
    fn until(&self, what: &str, mut happened: impl FnMut() -> bool) {
        match self {
            Self::Watch(_) => wait_until(what, happened),
            Self::EveryMinute(command) => {
                for _ in 0..5 {
                    let said = Said::from(command().output().unwrap());
                    assert_eq!(said.code, Some(0), "{said:?}");
                    if happened() {
                        return;
                    }
                }
                panic!("five minutes were not enough: {what}");
            }
        }
    }

    fn ends(self) {
        if let Self::Watch(watch) = self {
            watch.signal(Signal::TERM);
            assert_eq!(watch.ends().code, Some(0));
        }
    }
}

fn open_questions(chain: &Chain) -> Vec<Value> {
    let listed = chain.json(&["questions", "--json"]);
    listed.as_array().unwrap().iter().filter(|question| question["answered"].is_null()).cloned().collect()
}

fn answer(chain: &Chain, kind: &str, question: &str, text: &str) {
    let open = open_questions(chain);
    let asked =
        open.iter().find(|asked| asked["kind"] == kind && asked["question"].as_str().unwrap().contains(question));
    chain.ok(&["answer", asked.unwrap_or_else(|| panic!("{open:?}"))["id"].as_str().unwrap(), "--text", text]);
}

/// Everything happens a hundred days earlier than it did.
fn days_pass(state: &Path) {
    let database = rusqlite::Connection::open(state.join("agent-cli.db")).unwrap();
    let sql =
        "UPDATE requests SET detail = json_replace(detail, '$.wait.time', '2026-01-01T00:00:00Z') WHERE kind = 'wait'";
    assert_eq!(database.execute(sql, []).unwrap(), 1);
}

fn ends_by_itself(version: &str, driver: impl Fn(&Chain) -> Driver) {
    let chain = ready_for_anything(version, party);
    let root = chain.started(&["spawn", "root.md", "--on-permission", "ask"]);
    assert_eq!(open_questions(&chain).len(), 3);
    let driver = driver(&chain);
    let status = |id: &str| chain.json(&["show", id, "--json"])["status"].clone();
    let at_the_pause = chain.api.count();

    answer(&chain, "question", "When?", ANN);
    driver.until("ann waits for days", || {
        let waits = chain.json(&["resume", &root, "--json"])["waiting_on"].clone();
        waits.as_array().unwrap().iter().any(|wait| wait["wait"]["time"].is_string())
    });
    answer(&chain, "question", "Which cake?", BOB);
    driver.until("bob is done", || chain.api.count() == at_the_pause + 2);
    days_pass(&chain.state());
    driver.until("ann is done", || chain.api.count() == at_the_pause + 3);
    answer(&chain, "permission", "touch there", CID);
    driver.until("the chain is done", || status(&root) == "done");
    driver.ends();

    assert_eq!(chain.api.count(), at_the_pause + 6, "cid, the middle and the root make one request each");
    let reply = chain.ok(&["resume", &root]);
    assert!(reply.contains(&json!(ANN).to_string()), "{reply}");
    assert!(reply.contains(BOB) && reply.contains("not `there`, $HOME\n  but here"), "{reply}");
    assert!(!chain.home.project().join("there").exists());
    assert!(processes_of(&chain.state()).is_empty());
    chain.ok(&["fsck"]);
}

fn watch_continues_three_people_over_days(version: &str) {
    ends_by_itself(version, Driver::watch);
}

fn cron_continues_three_people_over_days(version: &str) {
    ends_by_itself(version, Driver::cron);
}

fn the_timer_continues_three_people_over_days(version: &str) {
    ends_by_itself(version, Driver::timer);
}

/// All processes die at once while the child thinks; its request was never answered.
fn the_timer_needs_no_hand_after_a_reboot(version: &str) {
    let never = Hold::new();
    let held = never.clone();
    let first = std::sync::Once::new();
    let chain = ready_for_anything(version, move |said| {
        if !said.task().contains("/ann.md") {
            return match said.result_texts()[..] {
                [] => Turn::bash("agent-cli spawn ann.md"),
                [.., last] => Turn::text(last),
            };
        }
        let mut turn = party(said);
        first.call_once(|| turn = turn.clone().held(&held));
        turn
    });
    let driver = Driver::timer(&chain);
    let running = chain.start(&["spawn", "root.md"]);
    let thinks = |requests: &[_]| requests.len() == 2;
    chain.api.wait_until(thinks);
    wait_until("nothing is left", || {
        let processes = processes_of(&chain.state());
        processes.iter().for_each(|process| process.kill());
        processes.is_empty()
    });
    assert_eq!(running.ends().code, None);
    never.release();

    driver.until("the question is asked", || open_questions(&chain).len() == 1);
    answer(&chain, "question", "When?", ANN);
    driver.until("it waits for days", || !chain.json(&["ls", "--json"])[0]["waiting_on"].to_string().contains("When?"));
    days_pass(&chain.state());
    let root = chain.only_root();
    driver.until("the chain is done", || chain.json(&["show", &root, "--json"])["status"] == "done");
    assert_eq!(chain.ok(&["resume", &root]), format!("{}\n", json!(ANN)));
    chain.ok(&["fsck"]);
}

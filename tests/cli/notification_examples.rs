//! The scripts in `examples/notifications`, run as a person would have them run.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::executable::write_executable;
use crate::world::{World, write_config};

/// A server on this machine: it records everything that is posted, and serves `answers`.
struct Server {
    url: String,
    posted: Arc<Mutex<Vec<Value>>>,
}

impl Server {
    fn start(answers: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let posted = Arc::new(Mutex::new(Vec::new()));
        let taken = Arc::clone(&posted);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("somebody connects");
                let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
                let mut line = String::new();
                reader.read_line(&mut line).expect("a request");
                let is_post = line.starts_with("POST ");
                let mut length = 0;
                loop {
                    line.clear();
                    reader.read_line(&mut line).expect("a header");
                    let lower = line.to_lowercase();
                    length =
                        lower.strip_prefix("content-length:").map_or(length, |it| it.trim().parse().expect("a number"));
                    if line.trim().is_empty() {
                        break;
                    }
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).expect("the body");
                if is_post {
                    taken.lock().expect("no panic").push(serde_json::from_slice(&body).expect("JSON"));
                }
                let text = if is_post { "ok" } else { answers };
                write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}", text.len())
                    .expect("it listens");
            }
        });
        Self { url, posted }
    }

    fn posted(&self) -> Vec<Value> {
        self.posted.lock().expect("no panic").clone()
    }
}

fn example(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/notifications").join(name).display().to_string()
}

/// A person who is notified of everything by one script.
fn notified_by(world: World, script: &str) -> World {
    let events = ["question", "approval", "done", "failed"];
    let command = |event: &str| format!("{event} = \"'{}'\"\n", example(script));
    write_config(&world, &format!("[on]\n{}", events.map(command).concat()));
    world
}

const HOSTILE: &str = "-x <b>$(touch pwned)</b> & <!channel> '\" \\";

fn asking(world: &World) -> String {
    world.file("root.md", format!("ask {HOSTILE}\nreply {{result}}\n"));
    world.spawn_paused("root.md")
}

fn statuses(world: &World) -> Value {
    let listed = world.run(&["notifications", "--json"]).json();
    listed
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| (it["status"].clone(), it["why"].clone()))
        .map(|it| json!(it))
        .collect()
}

#[test]
fn a_notice_is_shown_on_the_desktop() {
    let world = World::new();
    let path =
        std::env::join_paths([world.home().join("bin"), crate::programs::folder(), "/usr/bin".into(), "/bin".into()]);
    let world = notified_by(world.with("PATH", path.expect("no colon in the target directory")), "desktop.sh");
    let fake = world.home().join("bin/notify-send");
    write_executable(&fake, "#!/bin/sh\nfor word; do printf '%s\\n' \"$word\"; done > \"$HOME/shown\"\n");
    asking(&world);
    assert_eq!(statuses(&world), json!([["sent", null]]));
    let shown = fs::read_to_string(world.home().join("shown")).expect("it was shown");
    let body = "-x &lt;b&gt;$(touch pwned)&lt;/b&gt; &amp; &lt;!channel&gt; '\" \\";
    assert_eq!(shown, format!("--app-name=agent-cli\n--\nagent-cli: root.md: question\n{body}\n"));
}

#[test]
fn slack_gets_a_message_without_commands() {
    let server = Server::start("");
    let world = notified_by(World::new().with("SLACK_WEBHOOK_URL", &server.url), "slack.sh");
    let root = asking(&world);
    let id = world.question();
    world.answer("so <it> is");
    world.run(&["resume", &root]).prints("so <it> is");
    assert_eq!(statuses(&world), json!([["sent", null], ["sent", null]]));
    let plain = "-x &lt;b&gt;$(touch pwned)&lt;/b&gt; &amp; &lt;!channel&gt; '\" \\";
    let question = format!("*QUESTION* root.md: {plain}\n`agent-cli answer {} …`", &id[..8]);
    assert_eq!(server.posted(), [json!({"text": question}), json!({"text": "*DONE* root.md: so &lt;it&gt; is"})]);
}

#[test]
fn a_phone_gets_buttons_that_answer() {
    let server = Server::start("");
    let world =
        World::with_hooks().with("NTFY_URL", &server.url).with("NTFY_TOPIC", "mine").with("NTFY_ANSWERS", "said");
    let world = notified_by(world, "ntfy.sh");
    world.file("plan.md", "call ExitPlanMode {\"plan\": \"# The plan\"}\nend done\n");
    let root = world.run(&["spawn", "plan.md", "--permission-mode", "plan"]).started();
    let id = world.question();
    let [message] = server.posted().try_into().expect("one message");
    assert_eq!((&message["topic"], &message["message"]), (&json!("mine"), &json!("# The plan")));
    let buttons = message["actions"].as_array().expect("buttons").iter();
    let bodies: Vec<_> = buttons.map(|button| (button["label"].clone(), button["body"].clone())).collect();
    assert_eq!(bodies, [(json!("Allow"), json!(format!("{id} allow"))), (json!("Deny"), json!(format!("{id} deny")))]);

    // The request of the button, and requests that must be refused.
    let hostile = format!("{id} allow\\n{id} x");
    let said = [&format!("{id} deny"), "--help x", "$(touch pwned) x", &hostile, ""]
        .map(|message| format!("{{\"event\": \"message\", \"message\": \"{message}\"}}\n"));
    let said = format!("{{\"event\": \"open\"}}\n{}", said.concat());
    let answers = Server::start(said.leak());
    let read = world.program(example("ntfy-answers.sh"), ["--once"]).with("NTFY_URL", &answers.url).run();
    read.succeeds();
    let record = &world.run(&["history", &root, "--json"]).json()[0]["records"];
    assert_eq!((record.as_array().map(Vec::len), &record[0]["answer"]), (Some(1), &json!("deny")));
    assert!(!world.project().join("pwned").exists());
}

#[test]
fn a_phone_that_cannot_show_all_of_a_plan_gets_no_buttons() {
    let server = Server::start("");
    let world =
        World::with_hooks().with("NTFY_URL", &server.url).with("NTFY_TOPIC", "mine").with("NTFY_ANSWERS", "said");
    let world = notified_by(world, "ntfy.sh");
    for plan in ["x".repeat(4_000), "turned \\u202e around".to_owned()] {
        world.file("plan.md", format!("call ExitPlanMode {{\"plan\": \"{plan}\"}}\nend done\n"));
        world.run(&["spawn", "plan.md", "--permission-mode", "plan"]).started();
        let message = server.posted().pop().expect("a message");
        assert_eq!(message["actions"], json!([]));
        let said = message["message"].as_str().expect("a text");
        assert!(said.starts_with("cannot be shown here as it is: agent-cli questions "), "{said}");
    }
}

/// The reply to a button names the same answer as the button and the message.
#[test]
fn a_phone_shows_all_that_its_buttons_answer() {
    let long = format!("no{}", "-".repeat(40));
    for (options, has_buttons) in [
        (vec!["yes=do it", "no"], true),
        (vec!["yes", long.as_str()], false),
        (vec!["a", "b", "c", "d"], false),
        (vec!["yes", "n\u{3164}o"], false),
    ] {
        let server = Server::start("");
        let world =
            World::with_hooks().with("NTFY_URL", &server.url).with("NTFY_TOPIC", "mine").with("NTFY_ANSWERS", "said");
        let world = notified_by(world, "ntfy.sh");
        let options: String = options.iter().map(|option| format!(" --option '{option}'")).collect();
        world.file("root.md", format!("run agent-cli ask 'Deploy?'{options}\nreply {{result}}\n"));
        world.run(&["spawn", "root.md"]).started();
        let message = server.posted().pop().expect("a message");
        assert_eq!(!message["actions"].as_array().expect("a list").is_empty(), has_buttons, "{message}");
        if has_buttons {
            assert_eq!(message["message"], "Deploy?\n- yes: do it\n- no");
            assert_eq!(message["actions"][0]["label"], "yes");
        }
    }
}

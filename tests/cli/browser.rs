//! The page in a real Chromium, which `AGENT_CLI_CHROMIUM` names: without it these tests check nothing. `AGENT_CLI_AXE` names
//! the script of axe-core, which checks whether everybody can use the pages, and `AGENT_CLI_SCREENSHOTS` a directory for
//! pictures of them.

use std::cell::Cell;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::gate::PATIENCE;
use crate::page::Served;
use crate::world::World;

/// A browser, over the DevTools protocol.
struct Chromium {
    process: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    next: Cell<u64>,
}

/// A tab, by its session.
struct Tab(String);

impl Chromium {
    /// `None`: none is named.
    fn start(world: &World) -> Option<Self> {
        let program = env::var("AGENT_CLI_CHROMIUM").ok()?;
        let profile = world.home().join("profile");
        let line = "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null";
        let mut command = Command::new("sh");
        command
            .args(["-c", line, &program, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu"]);
        command.args([
            "--no-first-run", "--disable-quic", "--disable-background-networking", "--disable-component-update",
        ]);
        command.args(["--disable-sync", "--hide-scrollbars", "--host-resolver-rules=MAP evil.test 127.0.0.1"]);
        command.arg(format!("--user-data-dir={}", profile.display())).arg("about:blank");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("the browser can be started");
        let output = process.stdout.take().expect("a pipe");
        let (sender, messages) = channel();
        thread::spawn(move || {
            for message in BufReader::new(output).split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).expect("JSON");
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let input = process.stdin.take().expect("a pipe");
        Some(Self { process, input, messages, next: Cell::new(1) })
    }

    fn call(&self, tab: Option<&Tab>, method: &str, params: &Value) -> Value {
        let id = self.next.replace(self.next.get() + 1);
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(Tab(session)) = tab {
            message["sessionId"] = json!(session);
        }
        let mut input = &self.input;
        input.write_all(format!("{message}\0").as_bytes()).expect("the browser runs");
        let ends = Instant::now() + PATIENCE;
        loop {
            let left = ends.saturating_duration_since(Instant::now());
            let answer = self.messages.recv_timeout(left).unwrap_or_else(|_| panic!("{method} is not answered"));
            if answer["id"] == id {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    fn tab(&self, url: &str) -> Tab {
        let target = self.call(None, "Target.createTarget", &json!({ "url": url }))["targetId"].clone();
        let attached = self.call(None, "Target.attachToTarget", &json!({ "targetId": target, "flatten": true }));
        Tab(attached["sessionId"].as_str().expect("a session").to_owned())
    }

    fn run(&self, tab: &Tab, script: &str) -> Value {
        let params = json!({ "expression": script, "returnByValue": true, "awaitPromise": true });
        self.call(Some(tab), "Runtime.evaluate", &params)["result"]["value"].clone()
    }

    /// Waits until a condition holds in the tab.
    fn until(&self, tab: &Tab, condition: &str) {
        let ends = Instant::now() + PATIENCE;
        while self.run(tab, &format!("Boolean({condition})")) != json!(true) {
            let shown = self.run(tab, "document.body ? document.body.innerText : ''");
            assert!(Instant::now() < ends, "never: {condition}; shown: {shown}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn shows(&self, tab: &Tab, text: &str) {
        self.until(tab, &format!("document.body?.innerText.includes({})", json!(text)));
    }

    fn open(&self, tab: &Tab, url: &str) {
        self.call(Some(tab), "Page.navigate", &json!({ "url": url }));
        self.until(tab, "document.readyState === 'complete'");
    }

    /// Opens a page, and waits until it follows what happens.
    fn follow(&self, tab: &Tab, url: &str) {
        self.open(tab, url);
        self.until(tab, "document.body.dataset.connected");
    }

    fn key(&self, tab: &Tab, key: &str, code: u32) {
        let text = if key == "Enter" {
            "\r"
        } else if key == " " {
            " "
        } else {
            ""
        };
        for kind in ["keyDown", "keyUp"] {
            let mut params = json!({ "type": kind, "key": key, "windowsVirtualKeyCode": code });
            if kind == "keyDown" && !text.is_empty() {
                params["text"] = json!(text);
            }
            self.call(Some(tab), "Input.dispatchKeyEvent", &params);
        }
    }

    /// Moves the focus with the keyboard to what the selector names.
    fn tab_to(&self, tab: &Tab, selector: &str) {
        for _ in 0..80 {
            if self.run(tab, &format!("document.activeElement.matches({})", json!(selector))) == json!(true) {
                return;
            }
            self.key(tab, "Tab", 9);
        }
        panic!("the keyboard does not reach {selector}");
    }

    fn types(&self, tab: &Tab, text: &str) {
        self.call(Some(tab), "Input.insertText", &json!({ "text": text }));
    }

    /// Pictures of what a tab shows, at three widths, light and dark, if they are wanted.
    fn pictures(&self, tab: &Tab, name: &str) {
        let Ok(folder) = env::var("AGENT_CLI_SCREENSHOTS") else { return };
        for (width, height) in [(360, 780), (768, 1024), (1280, 900)] {
            let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
            self.call(Some(tab), "Emulation.setDeviceMetricsOverride", &size);
            let overflow = self.run(tab, "document.documentElement.scrollWidth - document.documentElement.clientWidth");
            assert_eq!(overflow, json!(0), "{name} is wider than {width}");
            for scheme in ["light", "dark"] {
                let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
                self.call(Some(tab), "Emulation.setEmulatedMedia", &media);
                let shot = self.call(Some(tab), "Page.captureScreenshot", &json!({ "format": "png" }));
                let bytes = decoded(shot["data"].as_str().expect("a picture"));
                fs::create_dir_all(&folder).expect("it can be made");
                fs::write(format!("{folder}/{name}-{width}-{scheme}.png"), bytes).expect("it can be written");
            }
        }
        self.call(Some(tab), "Emulation.clearDeviceMetricsOverride", &json!({}));
    }

    /// Checks with axe-core that everybody can use what a tab shows.
    fn is_accessible(&self, tab: &Tab, name: &str) {
        let Ok(script) = env::var("AGENT_CLI_AXE") else { return };
        self.run(tab, &fs::read_to_string(script).expect("axe-core"));
        for scheme in ["light", "dark"] {
            let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
            self.call(Some(tab), "Emulation.setEmulatedMedia", &media);
            let found = self.run(
                tab,
                "axe.run().then((found) => found.violations.map((it) => it.id + ': ' + it.nodes.map((node) => node.html).join(' | ')))",
            );
            assert_eq!(found, json!([]), "{name}, {scheme}");
        }
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What is written in base 64.
fn decoded(text: &str) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => Some(c - b'A'),
        b'a'..=b'z' => Some(c - b'a' + 26),
        b'0'..=b'9' => Some(c - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let values: Vec<u32> = text.bytes().filter_map(value).map(u32::from).collect();
    let bytes = values.chunks(4).flat_map(|chunk| {
        let bits = chunk.iter().enumerate().fold(0, |bits, (at, value)| bits | value << (18 - 6 * at));
        bits.to_be_bytes()[1..chunk.len()].to_vec()
    });
    bytes.collect()
}

#[test]
fn a_person_uses_the_page_with_the_keyboard_alone() {
    let world = World::with_hooks();
    let Some(chromium) = Chromium::start(&world) else { return };
    world.file(
        "task.md",
        "run agent-cli ask 'Which colour?' --option Red --option Blue --context 'For the door'\nreply {result}\n",
    );
    let mut served = Served::start(&world, &[]);
    let (link, at) = (served.address(&served.link), served.address(""));
    let tab = chromium.tab("about:blank");
    chromium.open(&tab, &link);
    chromium.until(&tab, "location.pathname === '/' && document.body.dataset.connected");
    served.next_link();
    chromium.is_accessible(&tab, "chains");

    chromium.follow_none(&tab, &format!("{at}/start"));
    chromium.is_accessible(&tab, "start");
    chromium.pictures(&tab, "start");
    chromium.tab_to(&tab, "input[name=file]");
    chromium.types(&tab, "task.md");
    chromium.tab_to(&tab, "input[name=directory]");
    chromium.types(&tab, &world.project().display().to_string());
    chromium.tab_to(&tab, "input[name=name]");
    chromium.types(&tab, "door");
    chromium.key(&tab, "Enter", 13);
    chromium.until(&tab, "location.pathname.startsWith('/chain/')");
    chromium.shows(&tab, "asks");
    chromium.is_accessible(&tab, "chain");
    chromium.pictures(&tab, "chain");
    let chain = chromium.run(&tab, "location.href").as_str().expect("an address").to_owned();

    // It is seen live that the chain goes on.
    let inbox = chromium.tab("about:blank");
    chromium.follow(&inbox, &format!("{at}/inbox"));
    chromium.is_accessible(&inbox, "inbox");
    chromium.pictures(&inbox, "inbox");
    chromium.tab_to(&inbox, "input[value='0']");
    chromium.key(&inbox, "ArrowDown", 40);
    chromium.until(&inbox, "document.querySelector('input[value=\"1\"]').checked");
    chromium.tab_to(&inbox, "button[value=answer]");
    chromium.key(&inbox, "Enter", 13);
    chromium.shows(&inbox, "nothing to answer");
    // A hidden tab follows nothing.
    chromium.to_front(&tab);
    chromium.until(&tab, "document.querySelector('#chain .state')?.innerText === 'done'");
    chromium.follow(&tab, &chain.replace("/chain/", "/agent/"));
    chromium.shows(&tab, "Blue");
    chromium.is_accessible(&tab, "agent");
    chromium.pictures(&tab, "agent");
    for page in ["history", "statistics"] {
        chromium.follow(&tab, &format!("{at}/{page}"));
        chromium.is_accessible(&tab, page);
        chromium.pictures(&tab, page);
    }

    // An edit is allowed by its diff, and a command denied.
    chromium.to_front(&inbox);
    world.file("door.txt", "The door is red.\nIt is open.\n");
    let asks = |tool: &str, input: &Value| {
        world.file("ask.md", "ask May I?\nreply {result}\n");
        let id = world.spawn_paused("ask.md");
        let kind = json!({ "permission": { "tool": tool, "input": input } });
        let sql = "UPDATE requests SET detail = ?1 WHERE rowid = (SELECT max(rowid) FROM requests)";
        world.database().execute(sql, [kind.to_string()]).expect("it can be written");
        id
    };
    let file = world.project().join("door.txt");
    asks("Edit", &json!({ "file_path": file, "old_string": "red", "new_string": "blue" }));
    chromium.shows(&inbox, "Allow this call?");
    chromium.until(&inbox, "document.querySelector('ins')?.innerText.includes('blue')");
    chromium.is_accessible(&inbox, "approval");
    chromium.pictures(&inbox, "approval");
    // The chain would not find the call that it has asked about.
    let stays = "document.querySelectorAll('[name=resume]').forEach((box) => { box.checked = false; })";
    chromium.run(&inbox, stays);
    chromium.tab_to(&inbox, "button[value=allow]");
    chromium.key(&inbox, "Enter", 13);
    chromium.shows(&inbox, "nothing to answer");
    asks("Bash", &json!({ "command": "rm -rf /" }));
    chromium.shows(&inbox, "rm -rf /");
    chromium.tab_to(&inbox, "input[name=reason]");
    chromium.run(&inbox, stays);
    chromium.types(&inbox, "never");
    chromium.tab_to(&inbox, "button[value=deny]");
    chromium.key(&inbox, "Enter", 13);
    chromium.shows(&inbox, "nothing to answer");
    let history = world.run(&["history", "--json"]).json();
    let answers: Vec<_> = history.as_array().unwrap().iter().map(|it| it["answer"].clone()).collect();
    assert_eq!(answers, [json!("Blue"), json!("allow"), json!("deny never")]);

    // A chain is stopped.
    world.file("wait.md", "ask When?\nreply {result}\n");
    let waiting = world.spawn_paused("wait.md");
    let id = world.run(&["show", &waiting, "--json"]).json()["id"].as_str().unwrap().to_owned();
    chromium.to_front(&tab);
    chromium.follow(&tab, &format!("{at}/chain/{id}"));
    chromium.tab_to(&tab, "form[action$='/stop'] button");
    chromium.key(&tab, "Enter", 13);
    chromium.until(&tab, "document.querySelector('#chain .state')?.innerText === 'stopped'");
    chromium.follow(&tab, &at);
    chromium.pictures(&tab, "chains");
}

#[test]
fn eight_tabs_work_and_come_back_after_a_restart() {
    let world = World::with_hooks();
    let Some(chromium) = Chromium::start(&world) else { return };
    let mut served = Served::start(&world, &[]);
    let at = served.address("");
    let first = chromium.tab("about:blank");
    chromium.open(&first, &served.address(&served.link));
    served.next_link();
    chromium.until(&first, "location.pathname === '/' && document.body.dataset.connected");
    let tabs: Vec<Tab> = (0..8).map(|_| chromium.tab(&format!("{at}/"))).collect();
    world.file("root.md", "ask When?\nreply {result}\n");
    world.spawn_paused("root.md");
    for tab in &tabs {
        chromium.until(tab, "document.readyState === 'complete'");
        chromium.to_front(tab);
        chromium.shows(tab, "root.md");
    }
    let (port, last) = (served.port, tabs.last().expect("eight"));
    served.stop();
    chromium.shows(last, "not connected");
    let served = Served::at(&world, &format!("127.0.0.1:{port}"), &[]);
    world.file("second.md", "ask When?\nreply {result}\n");
    world.spawn_paused("second.md");
    chromium.shows(last, "second.md");
    // Another name that leads here shows nothing, although the browser has a cookie.
    chromium.open(last, &format!("http://evil.test:{}/", served.port));
    chromium.shows(last, "this server has another name");
    // Neither does another port's page.
    chromium.open(last, &format!("{}/page.css", served.address("")));
    drop(served);
}

impl Chromium {
    fn to_front(&self, tab: &Tab) {
        self.call(Some(tab), "Page.bringToFront", &json!({}));
    }

    /// Opens a page without anything live.
    fn follow_none(&self, tab: &Tab, url: &str) {
        self.open(tab, url);
        self.until(tab, "document.querySelector('main')");
    }
}

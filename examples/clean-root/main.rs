//! From nothing to the first answered question, in an empty root directory: installs the archive that `packaging/build` has made, asks
//! as the README's "One minute" does, answers on a terminal, and prints what the terminal showed and how long it took. Only the download
//! of Claude Code is not counted: its program is copied. The model is a script on this machine.
//!
//! ```sh
//! packaging/build && debootstrap --variant=minbase stable ROOT
//! cargo run --example clean-root -- ROOT     # as root
//! ```

#[path = "../../tests/support/pty.rs"]
mod pty;
#[path = "../../tests/support/mod.rs"]
mod support;

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use pty::Screen;
use serde_json::json;
use support::{Conversation, MessagesApi, NEWEST, Turn, claude};

const PROMPT: &str = "Ask me which colour I like, and describe it.";
const PATIENCE: Duration = Duration::from_secs(60);

fn model(said: &Conversation) -> Turn {
    if said.results().count() > 0 {
        return Turn::text("Blue is the colour of the sky.");
    }
    let options = json!([{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]);
    let question = json!({"question": "Which colour?", "header": "Colour", "multiSelect": false, "options": options});
    Turn::call("AskUserQuestion", json!({"questions": [question]}))
}

fn main() {
    let root = std::env::args().nth(1).expect("usage: cargo run --example clean-root -- ROOT");
    let root = Path::new(&root);
    let packages = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/packages");
    let opt = root.join("opt/agent-cli");
    fs::create_dir_all(&opt).expect("only root may write there");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/install.sh"), &opt.join("install.sh"));
    let archives =
        fs::read_dir(&packages).expect("packaging/build makes the archive").flatten().map(|entry| entry.path());
    for archive in archives.filter(|path| path.is_file()) {
        copy(&archive, &opt.join(archive.file_name().expect("it is a file")));
    }
    fs::create_dir_all(root.join("usr/local/bin")).expect("only root may write there");
    copy(&claude(NEWEST), &root.join("usr/local/bin/claude"));

    let api = MessagesApi::start(model);
    let (output, terminal) = pty::terminal(80, pty::LINES, true).expect("there are terminals");
    let mut keyboard = output.try_clone().expect("a file can be opened once more");
    let stream = || Stdio::from(terminal.try_clone().expect("a file can be opened once more"));
    let line = format!(
        "sh /opt/agent-cli/install.sh && PATH=\"$HOME/.local/bin:$PATH\" && agent-cli spawn --prompt '{PROMPT}'"
    );
    let began = Instant::now();
    // As in a container.
    let enter = "mount -t proc proc $0/proc && mount --rbind /dev $0/dev && exec chroot $0 setsid --ctty --wait sh -c \"cd && $1\"";
    let mut child = Command::new("unshare")
        .args(["--mount", "sh", "-c", enter])
        .arg(root)
        .arg(&line)
        .env_clear()
        .envs([
            ("HOME", "/root"),
            ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
            ("TERM", "xterm"),
        ])
        .envs([("AGENT_CLI_RELEASES", "file:///opt/agent-cli"), ("AGENT_CLI_VERSION", env!("CARGO_PKG_VERSION"))])
        .env("ANTHROPIC_BASE_URL", api.url())
        .envs([("ANTHROPIC_API_KEY", "dummy"), ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")])
        .stdin(stream())
        .stdout(stream())
        .stderr(stream())
        .spawn()
        .expect("chroot can be started");
    drop(terminal);
    let screen = Screen::new(80, pty::LINES);
    let reader = pty::collect_screen(output, screen.clone());
    while !screen.text().contains("your answer") {
        assert!(began.elapsed() < PATIENCE && child.try_wait().expect("it is a child").is_none(), "{}", screen.text());
        thread::sleep(Duration::from_millis(10));
    }
    keyboard.write_all(b"2\r").expect("the terminal is open");
    let status = child.wait().expect("it is a child");
    let took = began.elapsed();
    reader.join().expect("a terminal can be read");
    println!("$ {line}\n{}", screen.text());
    assert!(status.success() && screen.text().contains("Blue is the colour of the sky."), "{status}");
    println!("{:.1} s from an empty root to the reply, without the download of Claude Code", took.as_secs_f64());
}

fn copy(from: &Path, to: &Path) {
    fs::copy(from, to).unwrap_or_else(|error| panic!("{} cannot be copied: {error}", from.display()));
}

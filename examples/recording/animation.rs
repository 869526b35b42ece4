//! A person, an agent and its two children at a terminal, as an animated picture.

use std::io::Write as _;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::pty::{self, Screen};
use crate::stage::Stage;
use crate::support::{Conversation, Turn};
use crate::svg::{Picture, animated};
use crate::{Running, ends};

const COLUMNS: u16 = 80;
const ROWS: u16 = 22;
/// How long one frame is shown at most.
const LONGEST: Duration = Duration::from_millis(1_200);
/// How long a person reads before they type, and the last frame is shown.
const READING: Duration = Duration::from_millis(3_500);
const LOOK: Duration = Duration::from_millis(20);

const FILES: [(&str, &str); 3] = [
    ("release.md", "Have notes.md and checks.md done. Ask me for the date.\n"),
    ("notes.md", "Write the release notes.\n"),
    ("checks.md", "Check the links.\n"),
];
const COMMAND: &str = "agent-cli spawn release.md";

fn model(said: &Conversation) -> Turn {
    let task = said.task();
    if task.contains("notes.md") {
        return Turn::text("The notes have three entries.");
    }
    if task.contains("checks.md") {
        return Turn::text("All 42 links work.");
    }
    match said.results_by_call().len() {
        0 => Turn::bash("agent-cli spawn notes.md checks.md"),
        1 => Turn::call(
            "AskUserQuestion",
            json!({"questions": [{
                "question": "The notes are written and all links work. When do we publish?",
                "header": "Date", "multiSelect": false,
                "options": [{"label": "Today", "description": "at 18:00"},
                    {"label": "Monday", "description": "when everybody is here"}],
            }]}),
        ),
        _ => Turn::text("Version 2.0 will be published on Monday."),
    }
}

/// Plays the scene, and prints it as SVG.
pub(crate) fn print() {
    let stage = Stage::with_model(model);
    FILES.iter().for_each(|(name, text)| stage.file(name, text));
    let mut film = Film::default();
    let screen = Screen::new(COLUMNS, ROWS);
    film.types(&screen, COMMAND);

    let (output, terminal) = pty::terminal(COLUMNS, ROWS, true).expect("there are terminals");
    let mut keyboard = output.try_clone().expect("a file can be opened once more");
    let copy = || Stdio::from(terminal.try_clone().expect("a file can be opened once more"));
    let mut command = stage.command(&COMMAND.split(' ').skip(1).collect::<Vec<_>>());
    command.env("TERM", "xterm-256color").stdin(copy()).stdout(copy()).stderr(copy());
    let child = command.spawn().expect("the program can be started");
    drop((command, terminal));
    let running = Running { child, reader: pty::collect_screen(output, screen.clone()) };
    film.takes_until(&screen, || screen.text().trim_end().ends_with("help\n>"));
    film.stands(READING);
    keyboard.write_all(b"2").expect("the terminal is open");
    film.takes_until(&screen, || screen.text().trim_end().ends_with("> 2"));
    film.stands(LONGEST);
    keyboard.write_all(b"\r").expect("the terminal is open");
    film.takes_until(&screen, || running.reader.is_finished());
    film.stands(READING);
    ends(running);
    println!("{}", animated(&film.frames));
}

/// What the screen has shown, and for how long.
#[derive(Default)]
struct Film {
    frames: Vec<(Picture, Duration)>,
    /// When the last frame was taken.
    taken: Option<Instant>,
}

impl Film {
    /// A person types a command after the shell's prompt.
    fn types(&mut self, screen: &Screen, command: &str) {
        screen.shows("$ ");
        self.takes(screen);
        self.stands(LONGEST);
        for part in command.as_bytes().chunks(2) {
            screen.shows(&String::from_utf8_lossy(part));
            self.takes(screen);
            self.stands(Duration::from_millis(90));
        }
        screen.shows("\r\n");
    }

    /// Takes a frame of each change, until the scene is over.
    fn takes_until(&mut self, screen: &Screen, is_over: impl Fn() -> bool) {
        let began = Instant::now();
        loop {
            let was_over = is_over();
            self.takes(screen);
            if was_over {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{}", screen.text());
            thread::sleep(LOOK);
        }
    }

    fn takes(&mut self, screen: &Screen) {
        let picture = Picture::new(&screen.now());
        if self.frames.last().is_some_and(|(last, _)| *last == picture) {
            return;
        }
        let shown = self.taken.replace(Instant::now()).map_or(LOOK, |taken| taken.elapsed().min(LONGEST));
        if let Some((_, duration @ Duration::ZERO)) = self.frames.last_mut() {
            *duration = shown;
        }
        self.frames.push((picture, Duration::ZERO));
    }

    /// The last frame is shown for this long.
    fn stands(&mut self, duration: Duration) {
        self.frames.last_mut().expect("a frame was taken").1 = duration;
    }
}

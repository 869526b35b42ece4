//! Pictures of a terminal, as an animated SVG. Each different line is drawn once, and the frames refer to it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use maud::{Markup, PreEscaped, html};
use vt100::Color;

/// The width and height of a character, in pixels.
const CELL: [usize; 2] = [8, 18];
/// How far below the top of its row a character stands.
const BASELINE: usize = 14;
const MARGIN: usize = 12;
/// The sixteen colours of a terminal on a dark background.
const COLORS: [&str; 16] = [
    "#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4", "#6e7681", "#ffa198",
    "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#ffffff",
];
const TEXT: &str = "#e6edf3";
const BACKGROUND: &str = "#0d1117";

/// What a terminal shows at one moment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Picture {
    lines: Vec<Line>,
    columns: u16,
}

type Line = Vec<Run>;

/// Characters that look the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Run {
    column: u16,
    /// How many columns it has.
    width: u16,
    text: String,
    color: &'static str,
    is_bold: bool,
    is_dim: bool,
}

impl Picture {
    pub(crate) fn new(screen: &vt100::Screen) -> Self {
        let (rows, columns) = screen.size();
        Self { lines: (0..rows).map(|row| line(screen, row, columns)).collect(), columns }
    }
}

fn line(screen: &vt100::Screen, row: u16, columns: u16) -> Line {
    let mut line: Line = Vec::new();
    for column in 0..columns {
        let Some(cell) = screen.cell(row, column).filter(|cell| cell.has_contents()) else { continue };
        let color = match cell.fgcolor() {
            Color::Idx(number) => COLORS.get(usize::from(number)).copied().unwrap_or(TEXT),
            Color::Default | Color::Rgb(..) => TEXT,
        };
        let width = if cell.is_wide() { 2 } else { 1 };
        let run =
            Run { column, width, text: cell.contents().to_owned(), color, is_bold: cell.bold(), is_dim: cell.dim() };
        match line.last_mut() {
            Some(last)
                if last.column + last.width == column
                    && (last.color, last.is_bold, last.is_dim) == (run.color, run.is_bold, run.is_dim) =>
            {
                last.text.push_str(&run.text);
                last.width += run.width;
            }
            _ => line.push(run),
        }
    }
    line
}

/// Pictures of the same size, each of which is shown for its time, again and again. Where people want less motion, the last one is shown.
pub(crate) fn animated(frames: &[(Picture, Duration)]) -> String {
    let (first, _) = frames.first().expect("there is a frame");
    let [width, height] = [usize::from(first.columns) * CELL[0], first.lines.len() * CELL[1]];
    let (mut numbers, mut different): (HashMap<&Line, usize>, Vec<&Line>) = (HashMap::new(), Vec::new());
    let lines = frames.iter().flat_map(|(picture, _)| &picture.lines).filter(|line| !line.is_empty());
    for line in lines {
        numbers.entry(line).or_insert_with(|| {
            different.push(line);
            different.len() - 1
        });
    }
    let frame = |(number, (picture, _)): (usize, &(Picture, Duration))| {
        let lines = picture.lines.iter().enumerate();
        let lines =
            lines.filter_map(|(row, line)| Some((number * height + row * CELL[1] + BASELINE, numbers.get(line)?)));
        html! { @for (y, line) in lines { use href={ "#l" (line) } y=(y) {} } }
    };
    let markup = html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(width + 2 * MARGIN) height=(height + 2 * MARGIN) role="img" {
            title { "An agent starts two others, asks a person, and continues with the answer" }
            style { (PreEscaped(style(frames, height))) }
            defs { @for (number, line) in different.iter().enumerate() { (drawn(number, line)) } }
            rect width="100%" height="100%" rx="8" fill=(BACKGROUND) {}
            svg x=(MARGIN) y=(MARGIN) width=(width) height=(height) {
                g.frames { @for numbered in frames.iter().enumerate() { (frame(numbered)) } }
            }
        }
    };
    markup.into_string()
}

fn drawn(number: usize, line: &Line) -> Markup {
    html! {
        text id={ "l" (number) } {
            @for run in line {
                tspan x=(usize::from(run.column) * CELL[0]) textLength=(usize::from(run.width) * CELL[0])
                    fill=[(run.color != TEXT).then_some(run.color)] font-weight=[run.is_bold.then_some("bold")]
                    opacity=[run.is_dim.then_some("0.6")] { (run.text) }
            }
        }
    }
}

/// All frames are below each other, and move up in steps.
fn style(frames: &[(Picture, Duration)], height: usize) -> String {
    let total: f64 = frames.iter().map(|(_, shown)| shown.as_secs_f64()).sum();
    let last = (frames.len() - 1) * height;
    let (mut steps, mut from) = (String::new(), 0.0);
    for (number, (_, shown)) in frames.iter().enumerate() {
        write!(steps, "{:.2}%{{transform:translateY(-{}px)}}", 100.0 * from / total, number * height)
            .expect("a string takes everything");
        from += shown.as_secs_f64();
    }
    format!(
        "text{{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:{TEXT};white-space:pre}}\
         .frames{{animation:play {total:.1}s step-end infinite}}@keyframes play{{{steps}}}\
         @media (prefers-reduced-motion){{.frames{{animation:none;transform:translateY(-{last}px)}}}}"
    )
}

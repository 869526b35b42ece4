//! Draws the dashboard.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use crate::app::lists::board::Section;
use crate::app::view::chain::ChainView;
use crate::cli::dashboard::model::{Model, View};
use crate::cli::dashboard::text::{self, KEYS, MOVES};
use crate::cli::output::Tone;
use crate::cli::output::format::fitted;
use crate::cli::view::ls::tone;
use crate::core::text::wrap::{columns, wrapped};

/// Below this width, each chain takes two lines.
const WIDE: u16 = 60;
/// Below this height, the selected chain has no details.
const TALL: u16 = 16;

pub(super) fn draw(frame: &mut Frame<'_>, model: &Model) {
    let area = frame.area();
    let (width, height) = (usize::from(area.width), area.height);
    if width == 0 || height < 3 {
        return;
    }
    let footer = footer(model, width);
    let footer_height = u16::try_from(footer.len()).unwrap_or(1).min(height.saturating_sub(2));
    let [head, rest] = split(area, 1);
    let [body, foot] = split(rest, rest.height.saturating_sub(footer_height));
    frame.render_widget(Paragraph::new(header(model, width)), head);
    frame.render_widget(Paragraph::new(footer), foot);
    if model.view == View::Help {
        frame.render_widget(Paragraph::new(help(width)), body);
        return;
    }
    let details = match model.selected_chain() {
        Some(chain) if height >= TALL => details(model, chain, width, usize::from(body.height / 3)),
        _ => Vec::new(),
    };
    let [list, below] = split(body, body.height.saturating_sub(u16::try_from(details.len()).unwrap_or(0)));
    frame.render_widget(Paragraph::new(details), below);
    let (lines, selected) = lines(model, width);
    let scroll = scroll(lines.len(), selected, usize::from(list.height));
    let seen: Vec<Line<'_>> = lines.into_iter().skip(scroll).take(usize::from(list.height)).collect();
    frame.render_widget(Paragraph::new(seen), list);
}

/// Splits an area into its upper `rows` and the rest.
fn split(area: Rect, rows: u16) -> [Rect; 2] {
    let rows = rows.min(area.height);
    [Rect { height: rows, ..area }, Rect { y: area.y + rows, height: area.height - rows, ..area }]
}

/// How many lines to scroll past, so that the selected lines are visible.
fn scroll(lines: usize, selected: usize, height: usize) -> usize {
    selected.saturating_sub(height / 2).min(lines.saturating_sub(height))
}

fn header(model: &Model, width: usize) -> Line<'static> {
    let [long, short] = text::summary(model);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let left = if columns(&long) <= width { long } else { fitted(&short, width) };
    let gap = |right: &String| width.saturating_sub(columns(&left) + columns(right));
    let right = text::surroundings(model).into_iter().find(|right| gap(right) > 1).unwrap_or_default();
    let gap = " ".repeat(gap(&right));
    Line::from(vec![Span::styled(left, bold), Span::raw(gap), Span::styled(right, dim())])
}

fn footer(model: &Model, width: usize) -> Vec<Line<'static>> {
    let said = match (model.view, &model.said) {
        (View::Confirm(question), _) => Some((text::question(model, question), true)),
        (_, Some(said)) => Some((said.clone(), false)),
        _ => None,
    };
    let mut lines = Vec::new();
    if let Some((said, is_question)) = said {
        let style = if is_question { Style::new().add_modifier(Modifier::BOLD) } else { Style::new() };
        lines.extend(wrapped(&one_line(&said), width, 2).into_iter().take(3).map(|line| Line::styled(line, style)));
    }
    lines.push(keys(model, width));
    lines
}

/// Messages are escaped, but may have several lines.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Formats as many keys as fit, of those that do something. The last keys take precedence.
fn keys(model: &Model, width: usize) -> Line<'static> {
    let named = KEYS.iter().filter(|(key, name, _)| !name.is_empty() && model.has_effect(key));
    let long: Vec<String> = named.clone().map(|(key, name, _)| format!("{key} {name}")).collect();
    // It is used least.
    let most: Vec<String> = long.iter().filter(|key| !key.starts_with("d ")).cloned().collect();
    let short: Vec<String> = named
        .map(|(key, name, _)| if matches!(*key, "?" | "q") { format!("{key} {name}") } else { (*key).to_owned() })
        .collect();
    for keys in [&long[..], &most[..], &short[..], &short[short.len() - 2..]] {
        let line = keys.join("  ");
        if columns(&line) <= width {
            return Line::styled(line, dim());
        }
    }
    Line::styled(fitted("? q", width), dim())
}

/// Formats the sections with their chains. Also returns the first line of the selected chain.
fn lines(model: &Model, width: usize) -> (Vec<Line<'static>>, usize) {
    let (mut lines, mut selected) = (Vec::new(), 0);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    for section in Section::OF_BOARD {
        let mut chains = model.board.of(section).peekable();
        if chains.peek().is_none() {
            continue;
        }
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.push(Line::styled(fitted(text::title(section), width), bold));
        for chain in chains {
            let is_selected = Some(chain.id) == model.selected;
            if is_selected {
                selected = lines.len();
            }
            lines.extend(rows(model, chain, width, is_selected));
        }
        if section == Section::Ended && model.board.more_done > 0 {
            let projects = if model.all_projects { " --all-projects" } else { "" };
            lines.push(note(&format!("  {} more: agent-cli ls --all{projects}", model.board.more_done), width));
        }
    }
    if lines.is_empty() {
        lines.push(note("No chain needs you, works or waits.", width));
        lines.push(note("agent-cli spawn FILE starts one.", width));
    }
    if model.board.more > 0 {
        lines.push(note(&format!("{} older chains: agent-cli ls", model.board.more), width));
    }
    if model.board.elsewhere > 0 {
        lines.push(note(&format!("{} chains of other projects: t", model.board.elsewhere), width));
    }
    (lines, selected)
}

fn note(text: &str, width: usize) -> Line<'static> {
    Line::styled(fitted(text, width), dim())
}

/// Formats the lines of a chain: one line, or two on a narrow terminal.
fn rows(model: &Model, chain: &ChainView, width: usize, is_selected: bool) -> Vec<Line<'static>> {
    let is_wide = width >= usize::from(WIDE);
    let state = chain.state.words(model.now, &model.zone);
    let (name, why, since) = (text::name(model, chain), text::why(model, chain), text::since(model, chain));
    let mark = if is_selected { "> " } else { "  " };
    let tone = if model.has_colours { style(tone(chain.state)) } else { Style::new() };
    let cell = |text: &str, room: usize| {
        let text = fitted(text, room);
        let blanks = room.saturating_sub(columns(&text));
        text + &" ".repeat(blanks)
    };
    let line = |spans: Vec<Span<'static>>| {
        let line = Line::from(spans);
        if is_selected { line.patch_style(Style::new().add_modifier(Modifier::REVERSED)) } else { line }
    };
    let room = width.saturating_sub(2);
    if is_wide {
        let (state_room, name_room) = (state_width(model), (width / 4).clamp(12, 28));
        let rest = room.saturating_sub(state_room + name_room + 4 + columns(&since) + 2);
        return vec![line(vec![
            Span::raw(mark),
            Span::styled(cell(&state, state_room), tone),
            Span::raw("  "),
            Span::raw(cell(&name, name_room)),
            Span::raw("  "),
            Span::raw(cell(&why, rest)),
            Span::raw("  "),
            Span::styled(since, dim()),
        ])];
    }
    let state = fitted(&state, room);
    let since = if columns(&state) + columns(&since) + 12 <= room { since } else { String::new() };
    let name_room = room.saturating_sub(columns(&state) + 2 + if since.is_empty() { 0 } else { columns(&since) + 2 });
    let mut spans = vec![Span::raw(mark), Span::styled(state, tone)];
    if name_room > 0 {
        spans.extend([Span::raw("  "), Span::raw(cell(&name, name_room))]);
    }
    if !since.is_empty() {
        spans.extend([Span::raw("  "), Span::styled(since, dim())]);
    }
    let mut lines = vec![line(spans)];
    if !why.is_empty() {
        lines.push(line(vec![Span::raw(cell(&format!("    {why}"), width))]));
    }
    lines
}

/// The width of the longest state on the screen.
fn state_width(model: &Model) -> usize {
    let states = model.board.chains.iter().map(|(_, chain)| columns(&chain.state.words(model.now, &model.zone)));
    states.max().unwrap_or(0)
}

fn details(model: &Model, chain: &ChainView, width: usize, most: usize) -> Vec<Line<'static>> {
    let all = text::details(model, chain, width);
    let hidden = all.len() > most;
    let shown = all.iter().take(if hidden { most.saturating_sub(1) } else { most });
    let mut lines: Vec<Line<'static>> = shown.map(|line| Line::raw(line.clone())).collect();
    if hidden {
        let key = if chain.open_questions > 0 { "a shows all" } else { "l shows more" };
        lines.push(note(&format!("... {key}"), width));
    }
    if !lines.is_empty() {
        lines.insert(0, Line::styled("-".repeat(width), dim()));
    }
    lines
}

fn help(width: usize) -> Vec<Line<'static>> {
    let key = |(key, _, does): &(&str, &str, &str)| wrapped(&format!("{key:>3}  {does}"), width, 5);
    let lines = KEYS.iter().flat_map(key).chain([String::new()]).chain(wrapped(MOVES, width, 2));
    lines.map(Line::raw).collect()
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

fn style(tone: Tone) -> Style {
    let colour = |colour: Color| Style::new().fg(colour);
    match tone {
        Tone::Plain => Style::new(),
        Tone::Good => colour(Color::Green),
        Tone::Asks => colour(Color::Yellow).add_modifier(Modifier::BOLD),
        Tone::Continues => colour(Color::Yellow),
        Tone::Waiting => colour(Color::Cyan),
        Tone::Bad => colour(Color::Red),
        Tone::Quiet => dim(),
    }
}

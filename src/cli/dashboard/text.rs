//! The texts of the dashboard about chains, escaped.

use std::collections::BTreeSet;

use crate::app::lists::board::Section;
use crate::app::view::chain::ChainView;
use crate::app::view::outcome::Continuer;
use crate::cli::chain::questions::{about, options};
use crate::cli::dashboard::model::{Continues, Model, Question};
use crate::cli::output::format::{age, one_line};
use crate::cli::report::waits::with_times;
use crate::cli::view::ls::reason;
use crate::core::chain::waiting_on::Blocking;
use crate::core::chain::waiting_on::shown_state::ShownState;
use crate::core::id::FrameId;
use crate::core::requests::approval;
use crate::core::text::escape;
use crate::core::text::wrap::wrapped_within;

/// The heading of a section.
pub(super) fn title(section: Section) -> &'static str {
    if section == Section::Ended { "Done today" } else { section.title() }
}

/// The chain's name or task. If the chain belongs to another project, the project comes first.
pub(super) fn name(model: &Model, chain: &ChainView) -> String {
    let name = one_line(chain.name.as_deref().unwrap_or(&chain.task));
    if model.here.starts_with(&chain.cwd) || chain.cwd.starts_with(&model.here) {
        return name;
    }
    let place = chain.cwd.file_name().map(|name| one_line(&name.to_string_lossy())).unwrap_or_default();
    format!("{place}: {name}")
}

/// The chain's question, activity or reason for waiting, on one line.
pub(super) fn why(model: &Model, chain: &ChainView) -> String {
    match chain.asked() {
        Some((asked, _)) => one_line(&asked) + &more(chain),
        None => reason(chain, model.now, &model.zone),
    }
}

fn more(chain: &ChainView) -> String {
    match chain.waiting_on.len().saturating_sub(1) {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    }
}

/// How long the chain has been in this state.
pub(super) fn since(model: &Model, chain: &ChainView) -> String {
    age(chain.asked().map_or(chain.since, |(_, since)| since), model.now)
}

/// Everything about a chain, in lines of this width.
pub(super) fn details(model: &Model, chain: &ChainView, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut add = |text: &str, indent: usize| {
        for line in escape::block(text.trim()).replace('\t', "    ").lines() {
            let line = format!("{}{line}", " ".repeat(indent));
            lines.extend(wrapped_within(&line, width, indent + 2));
        }
    };
    let agents = if chain.agents == 1 { "1 agent".to_owned() } else { format!("{} agents", chain.agents) };
    let (age, cost) = (age(chain.created, model.now), chain.cost.0.dollars());
    add(&format!("{}, {agents}, {cost}, started {age} ago in {}", chain.id.short(), chain.cwd.display()), 0);
    if chain.name.is_some() {
        add(&chain.task, 0);
    }
    if let Some(error) = &chain.error {
        add(error, 0);
    }
    let mut waits = BTreeSet::new();
    for blocker in &chain.waiting_on {
        match &blocker.what {
            Blocking::Question { form, .. } => {
                add(&form.question, 0);
                let context = form.context.iter().cloned();
                for line in context.chain(options(form)).chain(about(form, model.now, &model.zone)) {
                    add(&line, 2);
                }
            }
            Blocking::Permission { tool, input, .. } => add(&approval::summary(tool, input), 0),
            Blocking::Plan { plan, .. } => add(plan.text.as_deref().unwrap_or_else(|| plan.summary()), 0),
            // Agents that were paused together say the same.
            _ => {
                let line = format!("waits {}", with_times(blocker, model.now, &model.zone));
                if waits.insert(line.clone()) {
                    add(&line, 0);
                }
            }
        }
    }
    for (agent, doing) in &chain.doing {
        add(&format!("{}: {}", agent.short(), one_line(&doing.words(model.now))), 0);
    }
    match chain.state {
        ShownState::Abandoned | ShownState::Interrupted | ShownState::Failed => add("r continues it", 0),
        ShownState::CanContinue if model.continues == Continues::Person => add("r continues it", 0),
        _ => {}
    }
    lines
}

/// The numbers of chains by section, and the number of chains that need a person.
pub(super) fn summary(model: &Model) -> [String; 2] {
    let more = |section| if section == Section::Ended { model.board.more_done as usize } else { 0 };
    let counts = Section::OF_BOARD.map(|section| (section, model.board.of(section).count() + more(section)));
    let words = counts.map(|(section, count)| match (section, count) {
        (Section::NeedsYou, 0) => "nothing needs you".to_owned(),
        (Section::NeedsYou, 1) => "1 needs you".to_owned(),
        (Section::NeedsYou, count) => format!("{count} need you"),
        (_, 0) => String::new(),
        (Section::Working, count) => format!("{count} working"),
        (Section::Waiting, count) => format!("{count} waiting"),
        (Section::CanContinue, count) => format!("{count} can continue"),
        (Section::Ended, count) => format!("{count} done today"),
    });
    let all: Vec<&str> = words.iter().map(String::as_str).filter(|words| !words.is_empty()).collect();
    [all.join(", "), words[0].clone()]
}

/// Who continues chains, and which chains are shown.
pub(super) fn surroundings(model: &Model) -> [String; 2] {
    let who = match model.continues {
        Continues::Here => "continues chains",
        Continues::Elsewhere(Continuer::Watch) => "another watch continues chains",
        Continues::Elsewhere(Continuer::Service) => "the service continues chains",
        Continues::Person => "r continues a chain",
    };
    [format!("{}; {who}", if model.all_projects { "all projects" } else { "this project" }), who.to_owned()]
}

const YES: &str = "y: yes, other keys: no";

pub(super) fn question(model: &Model, question: Question) -> String {
    match question {
        Question::Stop(chain) => format!("stop {}? {YES} ({})", chain.short(), named(model, chain)),
        Question::Remove(chain) => {
            format!("remove {} and its conversations? {YES} ({})", chain.short(), named(model, chain))
        }
        Question::Quit => format!("stop watching, and the agents that it runs? {YES}"),
    }
}

/// Its state and name, at the end, where they may be cut.
fn named(model: &Model, id: FrameId) -> String {
    let chain = model.board.chains.iter().map(|(_, chain)| chain).find(|chain| chain.id == id);
    chain
        .map(|chain| format!("{}: {}", chain.state.words(model.now, &model.zone), name(model, chain)))
        .unwrap_or_default()
}

/// The keys, their short names, and descriptions of their effects, each of which fits on a line of 40 columns.
pub(super) const KEYS: [(&str, &str, &str); 11] = [
    ("a", "answer", "answer what the chain asks"),
    ("l", "logs", "what its agents say and do, live"),
    ("o", "open", "open a copy of its conversation"),
    ("s", "stop", "stop it after its running tools"),
    ("p", "pause", "pause it; r continues it"),
    ("r", "resume", "resume it in a process of its own"),
    ("d", "remove", "remove it and its conversations"),
    ("t", "", "this project, or all projects"),
    ("?", "help", "this page"),
    ("q", "quit", "leave; under watch, stop its agents"),
    ("^Z", "", "to the shell; fg returns"),
];

/// The help about keys that move the selection.
pub(super) const MOVES: &str = "Up Down j k PgUp PgDn g G: select; Enter: answer, or logs";

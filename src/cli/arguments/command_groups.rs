//! Lists the program's commands in groups. Commands that only other programs call are hidden.

use clap::error::{ContextKind, ContextValue};
use clap::{Command, Error};

use crate::cli::output;
use crate::core::text::wrap::wrapped;

/// A group of commands.
pub(crate) struct Group {
    /// The heading. If it is empty, the commands are hidden.
    pub(crate) title: &'static str,
    /// The name of each command, followed by its aliases.
    pub(crate) commands: &'static [&'static [&'static str]],
}

/// The maximum width of help and other clap output.
pub(crate) const WIDEST: usize = 100;

/// Other names that people use for a command, and that are too different to be typing errors.
const OTHER_WORDS: [(&str, &str); 8] = [
    ("run", "spawn"),
    ("start", "spawn"),
    ("exec", "spawn"),
    ("continue", "resume"),
    ("cancel", "stop"),
    ("remove", "rm"),
    ("delete", "rm"),
    ("rename", "name"),
];

/// The end of the short help.
const EXAMPLE: &str = "Example: agent-cli spawn --prompt 'Ask me which colour I like.'";

/// Commands that share a line of the list, with that line's text. Otherwise the list would not fit on a page.
const SHARED: [(&str, &str, &str); 9] = [
    ("watch", "work", "Continue chains as soon as they can continue, until stopped"),
    ("tell", "name", "Send an agent a message, or give a chain another name"),
    ("stats", "metrics", "Show costs by day, model and file, or numbers for Prometheus"),
    ("gc", "fsck", "Remove old chains and unused files, or check the records"),
    ("export", "import", "Write a chain to a file for another machine, or read one"),
    ("hosts", "access", "Manage the hosts of a PostgreSQL server, or its users' rights"),
    ("init", "uninit", "Teach the agents of this project to start others, or undo that"),
    ("mcp", "serve", "Serve chains to Claude Code and other MCP hosts, or as a page"),
    ("ask", "wait", "Ask a person, or wait for a file, a time, a command, an agent"),
];

/// Adds a help that lists the commands in groups. Clap would list them in a single group.
pub(crate) fn listed(program: Command, groups: &[Group]) -> Command {
    let (header, literal) = (*program.get_styles().get_header(), *program.get_styles().get_literal());
    let shown = || groups.iter().filter(|group| !group.title.is_empty());
    let shared = |name: &str| SHARED.iter().find(|(first, ..)| *first == name);
    let is_listed = |names: &&&[&str]| SHARED.iter().all(|(_, second, _)| *second != names[0]);
    let listed = |group: &Group| group.commands.iter().filter(is_listed).copied().collect::<Vec<_>>();
    let with_second = |names: &[&str]| {
        let second = shared(names[0]).map(|(_, second, _)| *second);
        names.iter().copied().chain(second).collect::<Vec<_>>().join(", ")
    };
    let names: Vec<String> = shown().flat_map(listed).map(with_second).collect();
    let indent = names.iter().map(String::len).max().unwrap_or(0) + 4;
    let width = output::width().unwrap_or(WIDEST).clamp(2 * indent, WIDEST);
    let mut names = names.into_iter();
    let mut template = "{about-with-newline}\n{usage-heading} {usage}\n\n".to_owned();
    for group in shown() {
        template += &format!("{header}{}:{header:#}\n", group.title);
        for (command, names) in listed(group).into_iter().zip(names.by_ref()) {
            let about = program.find_subcommand(command[0]).and_then(Command::get_about).map(ToString::to_string);
            let about = shared(command[0]).map(|(_, _, about)| (*about).to_owned()).or(about).unwrap_or_default();
            let lines = wrapped(&format!("  {names:0$}{about}", indent - 2), width, indent).join("\n");
            template += &format!("  {literal}{names}{literal:#}{}\n", &lines[2 + names.len()..]);
        }
        template.push('\n');
    }
    template += &format!("{header}Options:{header:#}\n{{options}}{{after-help}}");
    program.help_template(template).after_help(EXAMPLE)
}

/// Adds suggestions of commands to the error, the most similar first. Only commands for people are suggested, and by their own
/// names: `visible` returns the name of such a command, also for an alias.
pub(crate) fn suggesting_visible<'a>(mut error: Error, visible: impl Fn(&str) -> Option<&'a str>) -> Error {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    let meant = OTHER_WORDS.iter().find(|(other, _)| word == other).map(|(_, command)| vec![(*command).to_owned()]);
    let similar = match error.remove(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(names)) => names,
        Some(ContextValue::String(name)) => vec![name],
        _ => Vec::new(),
    };
    // Clap's order ends with the most similar one.
    let mut shown: Vec<String> = Vec::new();
    for name in similar.iter().rev().filter_map(|name| visible(name)) {
        if !shown.iter().any(|known| known == name) {
            shown.push(name.to_owned());
        }
    }
    let names = meant.unwrap_or(shown);
    if names.is_empty() {
        // Without a suggestion, this would print an empty line.
        error.remove(ContextKind::Suggested);
    } else {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(names));
    }
    error
}

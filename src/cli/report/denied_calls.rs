//! Reports denied calls, with the options that would have allowed them.

use crate::app::view::denied::{Adopted, DeniedCallView};
use crate::cli::output::{self, tell};
use crate::core::agent::denied_call::{Denied, in_words};
use crate::core::id::FrameId;
use crate::core::text::shell::{quoted, shell_word};

/// Returns the command that will allow such calls in future, with these options and rules.
fn command(adopted: &Adopted, options: &[String], rules: &[String]) -> String {
    let root = adopted.root.short();
    let keeps_args = !adopted.is_done && rules.is_empty();
    let args = if keeps_args { Vec::new() } else { adopted.args.words() };
    let args: Vec<String> = args.iter().map(|word| shell_word(word)).chain(rules.iter().cloned()).collect();
    // These options come before `--`, because everything after it is for Claude Code.
    let first = match adopted.is_done {
        false => format!("agent-cli resume {root}"),
        true => format!("agent-cli spawn --prompt TEXT --fork-from {root}"),
    };
    let dashes = (!args.is_empty()).then(|| format!("-- {}", args.join(" ")));
    std::iter::once(first).chain(options.iter().cloned()).chain(dashes).collect::<Vec<_>>().join(" ")
}

/// Reports denied calls, and the options that would have allowed them. The agent at the top is not named.
pub(crate) fn print_all(listed: &[DeniedCallView], top: FrameId) {
    let mut named: Vec<FrameId> = Vec::new();
    for DeniedCallView { agent, task, .. } in listed {
        if !named.contains(agent) {
            named.push(*agent);
            let calls: Vec<Denied> = of_agent(listed, *agent).map(|listed| listed.denied.clone()).collect();
            let whose = (*agent != top).then(|| format!("{task} ({})", agent.short()));
            tell(&in_words(&calls, whose.as_deref()));
        }
    }
    if let Some(hint) = hint(listed) {
        output::hint(&hint);
    }
}

/// Describes an agent's denied calls. If no option would have helped, this adds the reason that the agent was given.
pub(crate) fn words(listed: &[DeniedCallView]) -> Vec<String> {
    let said = |listed: &DeniedCallView| match &listed.denied {
        denied if denied.said.is_empty() || denied.unapproved && !denied.asked_by_hook => denied.call(),
        denied => format!("{} ({})", denied.call(), denied.said),
    };
    listed.iter().map(said).collect()
}

/// Suggests options that would have helped. `None` if no option would have helped.
pub(crate) fn hint(listed: &[DeniedCallView]) -> Option<String> {
    const MOST: usize = 4;
    let (mut asks, mut options, mut rules) = (false, Vec::new(), Vec::new());
    for remedy in listed.iter().flat_map(|listed| &listed.allowed_by) {
        match remedy.as_slice() {
            [option, ..] if option == "--on-permission" => asks = true,
            [separator, rule] if separator == "--" => push_new(&mut rules, quoted(rule)),
            option => push_new(&mut options, option.join(" ")),
        }
    }
    if rules.len() > MOST {
        rules.clear();
    }
    let allowable = |listed: &DeniedCallView| listed.allowed_by.iter().any(|remedy| remedy[0] != "--on-permission");
    let them = if listed.iter().all(allowable) { "them" } else { "some of them" };
    let ask = "with --on-permission ask, a person decides about such calls";
    let allowing = (!options.is_empty() || !rules.is_empty()).then(|| {
        match listed.iter().find_map(|listed| listed.adopted.as_ref()) {
            Some(adopted) => format!("{} continues with {them} allowed", command(adopted, &options, &rules)),
            None => {
                let dashes = (!rules.is_empty()).then(|| format!("-- {}", rules.join(" ")));
                let options = options.into_iter().chain(dashes).collect::<Vec<_>>().join(" ");
                format!("{options} would have allowed {them}")
            }
        }
    });
    let hints: Vec<String> = asks.then(|| ask.to_owned()).into_iter().chain(allowing).collect();
    (!hints.is_empty()).then(|| hints.join("; "))
}

fn push_new(all: &mut Vec<String>, new: String) {
    if !all.contains(&new) {
        all.push(new);
    }
}

fn of_agent(listed: &[DeniedCallView], agent: FrameId) -> impl Iterator<Item = &DeniedCallView> {
    listed.iter().filter(move |listed| listed.agent == agent)
}

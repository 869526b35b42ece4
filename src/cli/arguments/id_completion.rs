//! Completes ids, answers and permission modes in shells.
//!
//! A shell runs this at every Tab, so it creates nothing and reports no errors.

use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};

use crate::app::answer;
use crate::app::error::AppError;
use crate::claude::options;
use crate::cli::context::Context;
use crate::cli::output::format::{cut, one_line};
use crate::core::chain::frame_state::AgentStatus;
use crate::core::requests::request::RequestKind;
use crate::runtime::RuntimeError;
use crate::store::{Chains, Store, Summary};

/// The most candidates. More would be too many to look through.
const MOST: usize = 100;
/// The number of chains whose agents are candidates.
const MOST_TREES: usize = 20;
/// The maximum width of a title.
const LONG: usize = 40;

/// The ids and names of chains that are not done, and `last`.
pub(crate) fn chains() -> ArgValueCandidates {
    ArgValueCandidates::new(|| found(|store| Ok(of_chains(&newest(store, false)?))))
}

/// The ids and names of all chains.
pub(crate) fn all_chains() -> ArgValueCandidates {
    ArgValueCandidates::new(|| found(|store| Ok(of_chains(&newest(store, true)?))))
}

/// The ids and names of chains that are not done, and the ids of their agents.
pub(crate) fn agents() -> ArgValueCandidates {
    ArgValueCandidates::new(|| found(|store| with_agents(store, &newest(store, false)?)))
}

/// The ids and names of all chains, and the ids of their agents.
pub(crate) fn all_agents() -> ArgValueCandidates {
    ArgValueCandidates::new(|| found(|store| with_agents(store, &newest(store, true)?)))
}

fn with_agents(store: &Store, chains: &[Summary]) -> Result<Vec<CompletionCandidate>, RuntimeError> {
    let mut candidates = of_chains(chains);
    for chain in chains.iter().take(MOST_TREES) {
        for node in store.tree(chain.id)?.parents_first().into_iter().filter(|node| node.parent.is_some()) {
            candidates.push(candidate(&node.id.short(), &format!("{} {}", node.state.name(), node.title)));
        }
    }
    Ok(candidates)
}

/// The ids of open questions.
pub(crate) fn questions() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        found(|store| {
            let open = store.first_questions(MOST, None, true)?.questions;
            Ok(open.iter().map(|asked| candidate(&asked.id.short(), &asked.question)).collect())
        })
    })
}

/// The answers that the question of `agent-cli answer ID` offers, if any.
pub(crate) fn answers() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        // The shell passes the whole command line.
        let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        let Some(name) = words.skip_while(|word| word != "answer").skip(1).find(|word| !word.starts_with('-')) else {
            return Vec::new();
        };
        let Some(context) = Context::from_environment(false).ok().filter(|it| it.caller.is_none()) else {
            return Vec::new();
        };
        let asked = existing(&context, |store| {
            let id = answer::question_named(&context.app(store), &name, false)?;
            Ok::<_, AppError>(store.questions(id, false)?.pop())
        });
        match asked.flatten().map(|asked| asked.kind) {
            Some(RequestKind::Permission { .. } | RequestKind::Plan(_)) => ["allow", "deny"].map(Into::into).into(),
            Some(RequestKind::Ask(form)) => {
                form.options.iter().map(|option| candidate(&option.key, &option.description)).collect()
            }
            _ => Vec::new(),
        }
    })
}

/// The permission modes of Claude Code.
pub(crate) fn permission_modes() -> ArgValueCandidates {
    ArgValueCandidates::new(|| options::MODES.map(CompletionCandidate::new).into())
}

fn found(look: impl Fn(&Store) -> Result<Vec<CompletionCandidate>, RuntimeError>) -> Vec<CompletionCandidate> {
    let Ok(context) = Context::from_environment(false) else { return Vec::new() };
    // Agents must not see other agents' ids.
    if context.caller.is_some() {
        return Vec::new();
    }
    existing(&context, look).unwrap_or_default()
}

/// Looks something up in the state directory, if it exists.
pub(crate) fn existing<T, E>(context: &Context, look: impl Fn(&Store) -> Result<T, E>) -> Option<T> {
    let written = || {
        context.state_dir().ok().filter(|dir| dir.is_dir())?;
        look(&context.store().ok()?).ok()
    };
    context.read_snapshot(&look).or_else(written)
}

/// The newest chains. `with_done`: include chains that are done.
fn newest(store: &Store, with_done: bool) -> Result<Vec<Summary>, RuntimeError> {
    let mut kinds = store.chain_kinds()?;
    kinds.retain(|kind| with_done || kind.status != AgentStatus::Done);
    Ok(store.chains(Chains::Newest { most: MOST, kinds: Some(&kinds) })?.chains)
}

fn of_chains(chains: &[Summary]) -> Vec<CompletionCandidate> {
    let mut candidates = Vec::new();
    for chain in chains {
        let help = format!("{} {}", chain.state.name(), chain.title);
        candidates.extend(chain.name.as_ref().map(|name| candidate(name, &help)));
        candidates.push(candidate(&chain.id.short(), &help));
    }
    if !chains.is_empty() {
        candidates.push(candidate("last", "the newest chain of this project"));
    }
    candidates
}

fn candidate(value: &str, help: &str) -> CompletionCandidate {
    CompletionCandidate::new(value).help(Some(cut(&one_line(help), LONG).into()))
}

//! Which chains are listed, and what is left out.

use std::collections::HashSet;

use jiff::Timestamp;

use crate::cli::error::CliError;
use crate::cli::lookup::{Projects, here};
use crate::cli::output::tell;
use crate::core::id::FrameId;
use crate::store::{Alike, Store, Summary};

/// What a person wants to see.
#[derive(Debug)]
pub(super) struct Choice<'a> {
    pub(super) done: bool,
    pub(super) all_projects: bool,
    /// Only chains that stand so; empty: all.
    pub(super) status: &'a [String],
    pub(super) most: usize,
    /// The chains that nobody runs any more.
    pub(super) abandoned: &'a HashSet<FrameId>,
}

/// How many chains were left out, and why.
#[derive(Debug, Default)]
pub(super) struct Hidden {
    elsewhere: u64,
    done: u64,
    pub(super) others: u64,
    /// Whether there is no chain at all.
    pub(super) is_empty: bool,
}

impl Choice<'_> {
    /// The chains to list, the newest first. Few of them are read, however many there are.
    pub(super) fn of(&self, store: &Store, now: Timestamp) -> Result<(Vec<Summary>, Hidden), CliError> {
        let alike = store.chains_alike()?;
        let mut projects = Projects::default();
        let here = if self.all_projects { None } else { Some(here(&mut projects)?) };
        let mut is_here = |cwd: &std::path::Path| here.as_ref().is_none_or(|here| projects.of(cwd) == *here);
        let mut hidden = Hidden { is_empty: alike.is_empty(), ..Hidden::default() };
        let mut kinds: Vec<&Alike> = Vec::new();
        for kind in alike.iter().filter(|kind| self.status.is_empty() || self.status.contains(&kind.status)) {
            let is_open = self.done || kind.status != "done" || self.status.contains(&kind.status);
            match (is_here(&kind.cwd), is_open) {
                (true, true) => kinds.push(kind),
                (true, false) => hidden.done += kind.count,
                (false, true) => hidden.elsewhere += kind.count,
                (false, false) => {}
            }
        }
        let count: u64 = kinds.iter().map(|kind| kind.count).sum();
        if self.status.is_empty() {
            let found = store.newest_of(&kinds, self.most as u64)?;
            let chains = found.into_iter().filter_map(|root| store.summary(root).transpose());
            let chains = chains.collect::<Result<Vec<_>, _>>()?;
            hidden.others = count.saturating_sub(chains.len() as u64);
            return Ok((chains, hidden));
        }
        // An agent below the root makes these chains stand another way than their roots say.
        let mut unusual: HashSet<FrameId> = self.abandoned.clone();
        for status in ["running", "paused", "cancelled"] {
            unusual.extend(store.chains_with(status)?);
        }
        let found = store.newest_of(&kinds, (self.most + unusual.len()) as u64)?;
        let (mut chains, mut others) = (Vec::new(), count.saturating_sub(found.len() as u64));
        for root in unusual.iter().copied().chain(found.into_iter().filter(|root| !unusual.contains(root))) {
            let Some(chain) = store.summary(root)?.filter(|chain| is_here(&chain.cwd)) else { continue };
            let is_abandoned = self.abandoned.contains(&root);
            let status = match unusual.contains(&root) {
                true => store.tree(root)?.status_name(now),
                false => chain.state.name(),
            };
            if self.status.iter().any(|wanted| wanted == status || is_abandoned && wanted == "abandoned") {
                chains.push(chain);
            }
        }
        chains.sort_by_key(|chain| std::cmp::Reverse(chain.created));
        others += chains.len().saturating_sub(self.most) as u64;
        chains.truncate(self.most);
        Ok((chains, Hidden { others, ..hidden }))
    }
}

impl Hidden {
    /// Says what was left out. `shows_nothing`: nothing was listed, of the chains that stand as `status` says.
    pub(super) fn report(&self, shows_nothing: bool, status: &[String]) {
        let chains = |count: u64| if count == 1 { "1 chain".to_owned() } else { format!("{count} chains") };
        let is = |count: u64| if count == 1 { "is" } else { "are" };
        if shows_nothing && !status.is_empty() {
            tell(&format!("no chain in this project is {}", status.join(" or ")));
        } else if shows_nothing && self.elsewhere + self.done > 0 {
            tell("no open chains in this project");
        }
        if self.elsewhere > 0 {
            tell(&format!("{} of other projects: agent-cli ls --all-projects", chains(self.elsewhere)));
        }
        if self.done > 0 {
            tell(&format!("{} that {} done: agent-cli ls --all", chains(self.done), is(self.done)));
        }
        if self.others > 0 {
            tell(&format!("{} more: agent-cli ls --limit N", chains(self.others)));
        }
    }
}

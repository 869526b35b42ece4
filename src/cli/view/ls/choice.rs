//! Which chains are listed, and what is left out.

use std::collections::HashSet;
use std::path::Path;

use crate::app::App;
use crate::app::lookup::{Projects, here};
use crate::cli::error::CliError;
use crate::cli::output::{ListCommand, tell};
use crate::core::id::FrameId;
use crate::store::{Alike, Chains, Summary};

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
    pub(super) fn of(&self, app: &App<'_>) -> Result<(Vec<Summary>, Hidden), CliError> {
        let (store, now) = (app.store, app.now);
        let mut projects = Projects::default();
        let here = if self.all_projects { None } else { Some(here(app, &mut projects)?) };
        let mut is_here = |cwd: &Path| here.as_ref().is_none_or(|here| projects.of(cwd) == *here);
        // An agent below the root makes these chains stand another way than their roots say.
        let mut unusual: Vec<Summary> = Vec::new();
        for status in ["running", "paused", "cancelled"].into_iter().filter(|_| !self.status.is_empty()) {
            let found = store.chains(Chains::With { status, most: usize::MAX })?.chains;
            unusual.extend(found.into_iter().filter(|chain| is_here(&chain.cwd)));
        }
        let mut seen = HashSet::new();
        unusual.retain(|chain| seen.insert(chain.id));

        let mut hidden = Hidden { is_empty: true, ..Hidden::default() };
        let mut is_meant = |kind: &Alike| {
            hidden.is_empty = false;
            if !self.status.is_empty() && !self.status.contains(&kind.status) {
                return false;
            }
            let is_open = self.done || kind.status != "done" || self.status.contains(&kind.status);
            let is_here = is_here(&kind.cwd);
            match (is_here, is_open) {
                (true, false) => hidden.done += kind.count,
                (false, true) => hidden.elsewhere += kind.count,
                (true, true) | (false, false) => {}
            }
            is_here && is_open
        };
        let most = self.most.saturating_add(unusual.len());
        let found = store.chains(Chains::Newest { most, is_meant: &mut is_meant })?;
        hidden.others = found.more;
        if self.status.is_empty() {
            return Ok((found.chains, hidden));
        }
        let mut chains = Vec::new();
        let usual = found.chains.into_iter().filter(|chain| !seen.contains(&chain.id));
        for chain in unusual.into_iter().chain(usual) {
            let is_abandoned = self.abandoned.contains(&chain.id);
            let status = match seen.contains(&chain.id) {
                true => store.tree(chain.id)?.status(now).name(),
                false => chain.state.name(),
            };
            if self.status.iter().any(|wanted| wanted == status || is_abandoned && wanted == "abandoned") {
                chains.push(chain);
            }
        }
        chains.sort_by_key(|chain| std::cmp::Reverse(chain.created));
        hidden.others += chains.len().saturating_sub(self.most) as u64;
        chains.truncate(self.most);
        Ok((chains, hidden))
    }
}

impl Hidden {
    /// Says what `command` left out. `shows_nothing`: nothing was listed, of the chains that stand as `status` says.
    pub(super) fn report(&self, command: &ListCommand, shows_nothing: bool, status: &[String]) {
        let chains = |count: u64| if count == 1 { "1 chain".to_owned() } else { format!("{count} chains") };
        let is = |count: u64| if count == 1 { "is" } else { "are" };
        if shows_nothing && !status.is_empty() {
            tell(&format!("no chain in this project is {}", status.join(" or ")));
        } else if shows_nothing && self.elsewhere + self.done > 0 {
            tell("no open chains in this project");
        }
        command.tell_of_elsewhere(self.elsewhere);
        if self.done > 0 {
            tell(&format!("{} that {} done: {}", chains(self.done), is(self.done), command.with("--all")));
        }
        if self.others > 0 {
            tell(&format!("{} more: {}", chains(self.others), command.with("--limit N")));
        }
    }
}

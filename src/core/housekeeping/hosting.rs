//! Decides which host may run the agents of a chain.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where the agents of a chain run, if not on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elsewhere {
    /// The identifier of the state directory with its files.
    Host(String),
    /// No host has taken it yet.
    Waiting,
}

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(host) => write!(f, "run on the host {host}"),
            Self::Waiting => write!(f, "wait for a host"),
        }
    }
}

/// Words that say what a host offers, or what a chain needs.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Labels(BTreeSet<String>);

/// The text is not a list of labels.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a label: a label has up to 40 letters, digits, `-`, `_` and `.`")]
pub struct NotALabel(String);

/// The number of characters that a label may have.
const LONGEST: usize = 40;

impl FromStr for Labels {
    type Err = NotALabel;

    /// Labels are separated by commas or blanks.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let words = text.split([',', ' ']).map(str::trim).filter(|word| !word.is_empty());
        let is_label =
            |word: &str| word.len() <= LONGEST && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        let labels =
            words.map(|word| if is_label(word) { Ok(word.to_owned()) } else { Err(NotALabel(word.to_owned())) });
        labels.collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(String::as_str).collect::<Vec<_>>().join(" "))
    }
}

impl Labels {
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// The first of these labels that a host with `offered` lacks.
    fn first_missing(&self, offered: &Self) -> Option<&str> {
        self.names().find(|label| !offered.0.contains(*label))
    }
}

/// What this host offers to chains that it may take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) labels: Labels,
    /// The directories with the same content on all hosts.
    pub(crate) shared: Vec<PathBuf>,
}

/// The facts about a chain that runs on no host, or on another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    /// Its host; `None`: no host has taken it yet.
    pub(crate) host: Option<String>,
    /// Whether that host may still be running its agents.
    pub(crate) is_alive: bool,
    /// What its host must offer.
    pub(crate) labels: Labels,
    /// Where its unfinished agents work.
    pub(crate) directories: Vec<PathBuf>,
}

/// Why this host does not take a chain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// Its host may be running its agents.
    #[error("its host {0} is in use")]
    Alive(String),
    /// The lease of its host has ended, but that host may have files that this one does not.
    #[error("the lease of its host {host} has ended, but {} is not in a shared directory", directory.display())]
    NotShared {
        /// The host.
        host: String,
        /// Where an agent works.
        directory: PathBuf,
    },
    /// This host does not have a directory.
    #[error("this host has no directory {}", .0.display())]
    NoDirectory(PathBuf),
    /// This host does not offer a label.
    #[error("this host does not have the label {0}")]
    Label(String),
}

impl Placement {
    /// Whether a host with `offer` may run the chain from now on. `exists`: whether the host has a directory.
    ///
    /// A chain without a host can be run by every host that has its directories and labels. A host that is lost can have changed
    /// files that are nowhere else, so only chains in shared directories are taken from it, until a person forgets the host.
    pub(crate) fn may_be_taken(&self, offer: &Offer, exists: impl Fn(&Path) -> bool) -> Result<(), NotTaken> {
        if let Some(host) = &self.host {
            if self.is_alive {
                return Err(NotTaken::Alive(host.clone()));
            }
            let is_shared = |directory: &&PathBuf| offer.shared.iter().any(|shared| directory.starts_with(shared));
            if let Some(directory) = self.directories.iter().find(|directory| !is_shared(directory)) {
                return Err(NotTaken::NotShared { host: host.clone(), directory: directory.clone() });
            }
        }
        if let Some(label) = self.labels.first_missing(&offer.labels) {
            return Err(NotTaken::Label(label.to_owned()));
        }
        match self.directories.iter().find(|directory| !exists(directory)) {
            Some(directory) => Err(NotTaken::NoDirectory(directory.clone())),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Labels {
        text.parse().unwrap()
    }

    #[test]
    fn labels_are_words_without_order() {
        assert_eq!(labels("gpu, big"), labels("big gpu gpu"));
        assert_eq!(labels("gpu, big").to_string(), "big gpu");
        assert_eq!(labels(" ,"), Labels::default());
        for wrong in ["a/b", "ü", &"a".repeat(41), "a;b", "a\nb"] {
            assert!(wrong.parse::<Labels>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_chain_is_taken_if_no_agent_can_run_and_everything_it_needs_is_here() {
        let offer = Offer { labels: labels("gpu"), shared: vec!["/mnt/team".into()] };
        let there = |path: &Path| path.starts_with("/mnt") || path.starts_with("/srv");
        let placement = |host: Option<&str>, is_alive, needs: &str, directory: &str| {
            let directories = vec![directory.into()];
            let chain = Placement { host: host.map(str::to_owned), is_alive, labels: labels(needs), directories };
            chain.may_be_taken(&offer, there).map_err(|why| why.to_string())
        };
        let refused = |why: &str| Err(why.to_owned());
        assert_eq!(placement(None, false, "gpu", "/srv/a"), Ok(()));
        assert_eq!(placement(Some("one"), false, "", "/mnt/team/a"), Ok(()));
        assert_eq!(placement(Some("one"), true, "", "/mnt/team/a"), refused("its host one is in use"));
        let pinned = "the lease of its host one has ended, but /srv/a is not in a shared directory";
        assert_eq!(placement(Some("one"), false, "", "/srv/a"), refused(pinned));
        let beside = "the lease of its host one has ended, but /mnt/teams is not in a shared directory";
        assert_eq!(placement(Some("one"), false, "", "/mnt/teams"), refused(beside));
        assert_eq!(placement(None, false, "big gpu", "/srv"), refused("this host does not have the label big"));
        assert_eq!(placement(None, false, "", "/home/a"), refused("this host has no directory /home/a"));
    }
}

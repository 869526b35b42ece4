//! Decides which host may run the agents of a chain.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Component, Path, PathBuf};
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
    pub(crate) directories: Vec<WorkPlace>,
}

/// A directory in which an agent works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkPlace {
    pub(crate) path: PathBuf,
    /// The worktree that it is in, if its remote has a snapshot of it.
    pub(crate) pushed: Option<PushedPlace>,
}

/// A worktree that can be fetched from its remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PushedPlace {
    pub(crate) worktree: PathBuf,
    pub(crate) repository: PathBuf,
    /// Whether the snapshot has all files as they were when the last agent in it stopped.
    pub(crate) is_current: bool,
}

/// What a host has, as far as it matters.
pub(crate) trait HostFiles {
    fn has(&self, directory: &Path) -> bool;
    /// Where it keeps worktrees.
    fn worktrees(&self) -> &Path;
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
    /// The lease of its host has ended, and only that host has the last state of a worktree.
    #[error("the lease of its host {host} has ended, but the worktree {} could not be pushed as it was", worktree.display())]
    NotPushed {
        /// The host.
        host: String,
        worktree: PathBuf,
    },
    /// A worktree must have the same path on all hosts.
    #[error("its worktree is {}, but this host keeps worktrees in {}", worktree.display(), own.display())]
    OtherFolder { worktree: PathBuf, own: PathBuf },
    /// This host does not have the repository of a worktree.
    #[error("this host has no repository {}", .0.display())]
    NoRepository(PathBuf),
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
    /// files that are nowhere else, so only chains in shared directories and in pushed worktrees are taken from it, until a person
    /// forgets the host.
    pub(crate) fn may_be_taken(&self, offer: &Offer, files: &impl HostFiles) -> Result<(), NotTaken> {
        if let Some(host) = &self.host {
            if self.is_alive {
                return Err(NotTaken::Alive(host.clone()));
            }
            let is_shared = |place: &&WorkPlace| offer.shared.iter().any(|shared| is_within(&place.path, shared));
            for place in self.directories.iter().filter(|place| !is_shared(place)) {
                let host = host.clone();
                match &place.pushed {
                    Some(pushed) if pushed.is_current => {}
                    Some(pushed) => return Err(NotTaken::NotPushed { host, worktree: pushed.worktree.clone() }),
                    None => return Err(NotTaken::NotShared { host, directory: place.path.clone() }),
                }
            }
        }
        if let Some(label) = self.labels.first_missing(&offer.labels) {
            return Err(NotTaken::Label(label.to_owned()));
        }
        self.directories.iter().try_for_each(|place| place.is_on(files))
    }
}

/// Whether a path is in a directory, if no link leads out of it.
fn is_within(path: &Path, directory: &Path) -> bool {
    path.starts_with(directory) && !path.components().any(|part| part == Component::ParentDir)
}

impl WorkPlace {
    /// Whether a host has the directory, or can fetch it.
    fn is_on(&self, files: &impl HostFiles) -> Result<(), NotTaken> {
        match &self.pushed {
            Some(PushedPlace { worktree, .. }) if worktree.parent() != Some(files.worktrees()) => {
                Err(NotTaken::OtherFolder { worktree: worktree.clone(), own: files.worktrees().to_owned() })
            }
            Some(PushedPlace { repository, .. }) if !files.has(repository) => {
                Err(NotTaken::NoRepository(repository.clone()))
            }
            None if !files.has(&self.path) => Err(NotTaken::NoDirectory(self.path.clone())),
            Some(_) | None => Ok(()),
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
        let of = |host: Option<&str>, is_alive, needs: &str, place| {
            let chain =
                Placement { host: host.map(str::to_owned), is_alive, labels: labels(needs), directories: vec![place] };
            chain.may_be_taken(&offer, &There).map_err(|why| why.to_string())
        };
        let placement = |host: Option<&str>, is_alive, needs: &str, directory: &str| {
            of(host, is_alive, needs, WorkPlace { path: directory.into(), pushed: None })
        };
        let refused = |why: &str| Err(why.to_owned());
        assert_eq!(placement(None, false, "gpu", "/srv/a"), Ok(()));
        assert_eq!(placement(Some("one"), false, "", "/mnt/team/a"), Ok(()));
        assert!(placement(Some("one"), false, "", "/mnt/team/../home").is_err());
        assert_eq!(placement(Some("one"), true, "", "/mnt/team/a"), refused("its host one is in use"));
        let pinned = "the lease of its host one has ended, but /srv/a is not in a shared directory";
        assert_eq!(placement(Some("one"), false, "", "/srv/a"), refused(pinned));
        let beside = "the lease of its host one has ended, but /mnt/teams is not in a shared directory";
        assert_eq!(placement(Some("one"), false, "", "/mnt/teams"), refused(beside));
        assert_eq!(placement(None, false, "big gpu", "/srv"), refused("this host does not have the label big"));
        assert_eq!(placement(None, false, "", "/home/a"), refused("this host has no directory /home/a"));
        let pushed = |host, is_current, worktree: &str, repository: &str| {
            let pushed = PushedPlace { worktree: worktree.into(), repository: repository.into(), is_current };
            of(host, false, "", WorkPlace { path: format!("{worktree}/src").into(), pushed: Some(pushed) })
        };
        assert_eq!(pushed(Some("one"), true, "/state/worktrees/a", "/srv/.git"), Ok(()));
        let outdated =
            "the lease of its host one has ended, but the worktree /state/worktrees/a could not be pushed as it was";
        assert_eq!(pushed(Some("one"), false, "/state/worktrees/a", "/srv/.git"), refused(outdated));
        assert_eq!(pushed(None, false, "/state/worktrees/a", "/srv/.git"), Ok(()));
        let elsewhere = "its worktree is /other/worktrees/a, but this host keeps worktrees in /state/worktrees";
        assert_eq!(pushed(Some("one"), true, "/other/worktrees/a", "/srv/.git"), refused(elsewhere));
        let not_cloned = "this host has no repository /home/a/.git";
        assert_eq!(pushed(Some("one"), true, "/state/worktrees/a", "/home/a/.git"), refused(not_cloned));
    }

    struct There;

    impl HostFiles for There {
        fn has(&self, directory: &Path) -> bool {
            directory.starts_with("/mnt") || directory.starts_with("/srv")
        }

        fn worktrees(&self) -> &Path {
            Path::new("/state/worktrees")
        }
    }
}

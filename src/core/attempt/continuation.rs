//! How an attempt continues a conversation.

/// A way to continue. `claude` shows at the start which ways it supports: it refuses before it has done anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// Forks the kept copy, and passes it the result of the call where the agent stopped, if that is possible.
    #[default]
    Input,
    /// Forks the kept copy and continues at the call where the agent stopped.
    Fork,
    /// Continues there in the session itself, which is first restored from the kept copy.
    InPlace,
    /// Forks the kept copy and passes the call's result in a prompt.
    Prompt,
}

impl Way {
    /// Whether an attempt continues in the session itself. `prompted`: whether it has a prompt; `in_worktree`: whether
    /// Claude Code would return its agent to the worktree that it entered, which it does not do for a fork.
    pub(crate) fn is_in_place(self, prompted: bool, in_worktree: bool) -> bool {
        in_worktree || (self == Self::InPlace && !prompted)
    }

    /// The way in which a frame continues. `after_refusals`: the way to which refusals in this run have led; `refuses_forks`:
    /// whether its `claude` is known to refuse forks.
    pub(crate) fn first(after_refusals: Option<Self>, refuses_forks: bool) -> Self {
        after_refusals.unwrap_or(if refuses_forks { Self::InPlace } else { Self::Input })
    }

    /// Whether accepting this way proves that a `claude` objects to forks: it has refused a fork before.
    pub(crate) fn shows_refusal_of_forks(self, refuses_forks: bool) -> bool {
        self == Self::InPlace && !refuses_forks
    }

    /// The way to try next if this one was refused; `None`: all have been tried.
    pub(crate) fn after_refusal(self) -> Option<Self> {
        match self {
            Self::Input => Some(Self::Fork),
            Self::Fork => Some(Self::InPlace),
            Self::InPlace => Some(Self::Prompt),
            Self::Prompt => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_is_made_where_it_loses_nothing() {
        for way in [Way::Input, Way::Fork, Way::InPlace, Way::Prompt] {
            for prompted in [false, true] {
                assert!(way.is_in_place(prompted, true));
                assert_eq!(way.is_in_place(prompted, false), way == Way::InPlace && !prompted);
            }
        }
    }

    #[test]
    fn a_program_that_is_known_to_refuse_forks_is_not_asked_again() {
        assert_eq!([false, true].map(|known| Way::first(None, known)), [Way::Input, Way::InPlace]);
        for way in [Way::Input, Way::Fork, Way::InPlace, Way::Prompt] {
            assert_eq!([false, true].map(|known| Way::first(Some(way), known)), [way; 2]);
            assert_eq!(way.shows_refusal_of_forks(false), way == Way::InPlace);
            assert!(!way.shows_refusal_of_forks(true), "it is known");
        }
    }

    #[test]
    fn what_no_call_can_return_comes_by_prompt() {
        assert_eq!(Way::default().after_refusal(), Some(Way::Fork));
        assert_eq!(Way::Fork.after_refusal(), Some(Way::InPlace));
        assert_eq!(Way::InPlace.after_refusal(), Some(Way::Prompt));
        assert_eq!(Way::Prompt.after_refusal(), None);
    }
}

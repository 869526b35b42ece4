//! How an attempt continues a conversation.

/// A way to continue. Which ones a `claude` takes, it says when it is started: it refuses before it has done anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// It forks the kept copy, and goes on at the call where the agent stopped.
    #[default]
    Fork,
    /// It goes on there in the session itself, which is made what the kept copy is.
    InPlace,
    /// It forks the kept copy, and is given with a prompt what the call would return.
    Prompt,
}

impl Way {
    /// Whether an attempt goes on in the session itself. `prompted`: whether it has a prompt; `in_worktree`: whether Claude Code would
    /// bring its agent back into the worktree that it has entered, which it does for no fork.
    #[must_use]
    pub fn is_in_place(self, prompted: bool, in_worktree: bool) -> bool {
        in_worktree || (self == Self::InPlace && !prompted)
    }

    /// What is tried when this one was refused; `None`: the refusal stands.
    #[must_use]
    pub fn after_refusal(self) -> Option<Self> {
        match self {
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
        for way in [Way::Fork, Way::InPlace, Way::Prompt] {
            for prompted in [false, true] {
                assert!(way.is_in_place(prompted, true));
                assert_eq!(way.is_in_place(prompted, false), way == Way::InPlace && !prompted);
            }
        }
    }

    #[test]
    fn what_no_call_can_return_comes_by_prompt() {
        assert_eq!(Way::default().after_refusal(), Some(Way::InPlace));
        assert_eq!(Way::InPlace.after_refusal(), Some(Way::Prompt));
        assert_eq!(Way::Prompt.after_refusal(), None);
    }
}

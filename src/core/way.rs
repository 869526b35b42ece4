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
    fn what_no_call_can_return_comes_by_prompt() {
        assert_eq!(Way::default().after_refusal(), Some(Way::InPlace));
        assert_eq!(Way::InPlace.after_refusal(), Some(Way::Prompt));
        assert_eq!(Way::Prompt.after_refusal(), None);
    }
}

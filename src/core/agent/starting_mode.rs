//! The permission mode in which an attempt begins.

use crate::core::agent::launch::Launch;
use crate::core::agent::permission_mode::{self, is_same};

/// The permission modes that `claude` printed during an attempt. It prints a new one before the result of the call that
/// changes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Modes {
    pub first: String,
    pub last: String,
}

/// A mode that a person chose when approving a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chosen<'a> {
    pub mode: &'a str,
    /// Whether the next attempt informs the agent about it. Later the agent may have left that mode, and may still return to
    /// it.
    pub is_new: bool,
}

/// The permission mode in which an attempt begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Beginning {
    /// The mode, if it differs from the launch options.
    pub mode: Option<String>,
    /// The mode that the agent was in and may no longer be in.
    pub refused: Option<String>,
}

/// The permission mode in which an agent's next attempt begins: the one in which it paused, or the one in which a
/// person lets it continue. `last_mode`: the former, if it differs from `launch`.
///
/// An agent may be in its chain's starting modes and in narrower ones. Only a person who approves a plan can choose a
/// wider one.
pub(crate) fn beginning(launch: &Launch, last_mode: Option<&str>, chosen: Option<Chosen<'_>>) -> Beginning {
    let other_than_launch = |mode: &str| Some(mode.to_owned()).filter(|mode| !is_of(launch, mode));
    match (last_mode, chosen) {
        (_, Some(Chosen { mode, is_new: true })) => Beginning { mode: other_than_launch(mode), refused: None },
        (None, _) => Beginning::default(),
        (Some(mode), chosen)
            if launch.covers(mode) || chosen.is_some_and(|chosen| permission_mode::covers(chosen.mode, mode)) =>
        {
            Beginning { mode: other_than_launch(mode), refused: None }
        }
        (Some(mode), _) => Beginning { mode: None, refused: Some(mode.to_owned()) },
    }
}

/// The mode in which an attempt left its agent, if it differs from `launch`. `began_with`: the same when it began.
pub(crate) fn last_mode(launch: &Launch, began_with: Option<&str>, printed: Option<&Modes>) -> Option<String> {
    match printed {
        Some(Modes { first, last }) if !is_same(first, last) => Some(last.clone()).filter(|mode| !is_of(launch, mode)),
        // Settings may have replaced the requested mode.
        _ => began_with.map(str::to_owned),
    }
}

/// The mode in which an agent is now, if it may differ from `launch`: without a mode among the launch options, the user's settings
/// name one, and `claude` prints it.
pub(crate) fn current_mode(launch: &Launch, began_with: Option<&str>, printed: Option<&Modes>) -> Option<String> {
    let of_settings = || {
        let mode = &printed.filter(|_| launch.permission_mode.is_none() && !launch.is_unrestricted())?.last;
        Some(mode.clone()).filter(|mode| !is_same(mode, permission_mode::DEFAULT))
    };
    last_mode(launch, began_with, printed).or_else(of_settings)
}

/// The mode of the next attempt after one that left no conversation. `before`: the mode in which the lost attempt would have
/// left its agent if it had changed nothing; `last_mode`: the one in which it did.
///
/// Requests that the agent made in a narrower mode remain valid, and so does the mode: a person may have said "not yet". A
/// wider mode is lost with the conversation.
pub(crate) fn after_loss(launch: &Launch, before: Option<&str>, last_mode: Option<String>) -> Option<String> {
    let is_narrower = |mode: &String| giving(launch, before).covers(mode);
    last_mode.filter(is_narrower).or_else(|| before.map(str::to_owned))
}

/// The launch options that limit a child's when the agent asks for it now: in a narrower mode than its own it cannot give more
/// rights than it has now. `is_in`: that mode, if it differs from `launch`.
pub(crate) fn giving(launch: &Launch, is_in: Option<&str>) -> Launch {
    match is_in {
        Some(mode) if launch.covers(mode) => launch.clone().in_mode(mode),
        _ => launch.clone(),
    }
}

fn is_of(launch: &Launch, mode: &str) -> bool {
    match &launch.permission_mode {
        _ if launch.is_unrestricted() => mode == permission_mode::UNRESTRICTED,
        // Settings may name another one.
        None => false,
        Some(own) => is_same(own, mode),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::agent::claude_args::ClaudeArgs;

    fn launch(mode: Option<&str>) -> Launch {
        Launch { permission_mode: mode.map(str::to_owned), ..Launch::default() }
    }

    fn unrestricted() -> Launch {
        Launch { args: ClaudeArgs::from_recorded(&["--dangerously-skip-permissions"]), ..Launch::default() }
    }

    const fn chosen(mode: &str, is_new: bool) -> Option<Chosen<'_>> {
        Some(Chosen { mode, is_new })
    }

    #[test]
    fn an_attempt_begins_in_the_mode_that_its_agent_was_in() {
        let edits = || launch(Some("acceptEdits"));
        let plan = || launch(Some("plan"));
        for (name, launch, last_mode, chosen, mode, refused) in [
            ("it never left its own", edits(), None, None, None, None),
            ("it entered plan mode", edits(), Some("plan"), None, Some("plan"), None),
            ("without any mode, too", launch(None), Some("plan"), None, Some("plan"), None),
            ("its own is narrower by now", plan(), Some("default"), None, None, Some("default")),
            ("it forged a wider one", edits(), Some("bypassPermissions"), None, None, Some("bypassPermissions")),
            ("one that nobody knows", edits(), Some("free"), None, None, Some("free")),
            ("nothing is wider than all", unrestricted(), Some("free"), None, Some("free"), None),
            ("its own by name", edits(), Some("acceptEdits"), None, None, None),
            ("its own by another name", launch(Some("default")), Some("manual"), None, None, None),
            ("all is allowed", unrestricted(), Some("bypassPermissions"), None, None, None),
            ("a person chooses its own", edits(), Some("plan"), chosen("acceptEdits", true), None, None),
            ("a person chooses a wider one", plan(), None, chosen("acceptEdits", true), Some("acceptEdits"), None),
            ("a person chooses a narrower one", edits(), Some("plan"), chosen("default", true), Some("default"), None),
            (
                "it stays in the one that was chosen",
                plan(),
                Some("acceptEdits"),
                chosen("acceptEdits", false),
                Some("acceptEdits"),
                None,
            ),
            ("it has left the one that was chosen", plan(), None, chosen("acceptEdits", false), None, None),
            (
                "it may be in those below the one that was chosen",
                plan(),
                Some("default"),
                chosen("acceptEdits", false),
                Some("default"),
                None,
            ),
            (
                "and in none above it",
                plan(),
                Some("bypassPermissions"),
                chosen("acceptEdits", false),
                None,
                Some("bypassPermissions"),
            ),
        ] {
            let expected = Beginning { mode: mode.map(str::to_owned), refused: refused.map(str::to_owned) };
            assert_eq!(beginning(&launch, last_mode, chosen), expected, "{name}");
        }
    }

    #[test]
    fn what_claude_printed_tells_the_mode_that_an_agent_is_left_in() {
        let edits = || launch(Some("acceptEdits"));
        for (name, launch, began_with, printed, expected) in [
            ("it never changed", edits(), None, Some(("acceptEdits", "acceptEdits")), None),
            ("nothing was printed", edits(), Some("plan"), None, Some("plan")),
            ("it entered plan mode", edits(), None, Some(("acceptEdits", "plan")), Some("plan")),
            ("it is still in it", edits(), Some("plan"), Some(("plan", "plan")), Some("plan")),
            ("it is back", edits(), Some("plan"), Some(("plan", "acceptEdits")), None),
            ("it is back by another name", launch(Some("default")), Some("plan"), Some(("plan", "manual")), None),
            ("settings forbid its own", unrestricted(), None, Some(("default", "default")), None),
            ("settings name the first", launch(None), None, Some(("acceptEdits", "acceptEdits")), None),
            ("plan mode after that", launch(None), None, Some(("acceptEdits", "plan")), Some("plan")),
        ] {
            let printed = printed.map(|(first, last): (&str, &str)| Modes { first: first.into(), last: last.into() });
            assert_eq!(last_mode(&launch, began_with, printed.as_ref()).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn a_mode_of_the_users_settings_bounds_children() {
        for (launch, began_with, printed, expected) in [
            (launch(None), None, ("plan", "plan"), Some("plan")),
            (launch(None), None, ("dontAsk", "dontAsk"), Some("dontAsk")),
            (launch(None), None, ("default", "default"), None),
            (launch(None), Some("plan"), ("plan", "plan"), Some("plan")),
            (launch(Some("acceptEdits")), None, ("acceptEdits", "acceptEdits"), None),
            (unrestricted(), None, ("default", "default"), None),
        ] {
            let printed = Modes { first: printed.0.into(), last: printed.1.into() };
            let mode = current_mode(&launch, began_with, Some(&printed));
            assert_eq!(mode.as_deref(), expected, "{launch:?}");
            if let Some(mode) = mode {
                assert!(!giving(&launch, Some(&mode)).covers("acceptEdits"));
            }
        }
    }

    #[test]
    fn a_lost_conversation_widens_no_mode() {
        let edits = || launch(Some("acceptEdits"));
        for (name, launch, before, last_mode, expected) in [
            ("it never left its own", edits(), None, None, None),
            ("it entered plan mode", edits(), None, Some("plan"), Some("plan")),
            ("it was in plan mode all the time", edits(), Some("plan"), Some("plan"), Some("plan")),
            ("it left plan mode", edits(), Some("plan"), None, Some("plan")),
            ("it left plan mode for another", edits(), Some("plan"), Some("default"), Some("plan")),
            ("it forged a wider one", edits(), None, Some("bypassPermissions"), None),
            ("it may do everything", unrestricted(), None, Some("plan"), Some("plan")),
        ] {
            let last_mode = last_mode.map(str::to_owned);
            assert_eq!(after_loss(&launch, before, last_mode).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn an_agent_gives_no_more_than_its_mode_lets_it_have() {
        let edits = launch(Some("acceptEdits"));
        let given = |is_in| giving(&edits, is_in).permission_mode;
        assert_eq!(given(Some("plan")).as_deref(), Some("plan"));
        assert_eq!(given(None).as_deref(), Some("acceptEdits"));
        assert_eq!(given(Some("bypassPermissions")).as_deref(), Some("acceptEdits"), "a mode that it forged");
        assert_eq!(giving(&unrestricted(), Some("plan")), unrestricted().in_mode("plan"));
        assert!(!giving(&unrestricted(), Some("plan")).is_unrestricted());
    }
}

//! Exit statuses. They are part of the interface, because scripts depend on them.

use std::process::ExitCode;

/// The exit status of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ExitStatus {
    /// Success. A pause is not a failure: a waiting tree ends with this status, too.
    Ok = 0,
    /// The agent failed, or the program could not do what was asked.
    Failed = 1,
    /// The command line is wrong, or the request is refused.
    Usage = 2,
    /// The id matches nothing, or is ambiguous.
    NoSuchFrame = 3,
    /// `claude` is missing, unusable, or refused to do anything.
    Claude = 4,
    /// With `--exit-code`, the tree waits. In an agent's call, the request has no result yet.
    Waiting = 75,
    /// A person stopped it.
    Interrupted = 130,
}

impl ExitStatus {
    /// Its name in the output of `--json`.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::Usage => "usage",
            Self::NoSuchFrame => "not_found",
            Self::Claude => "claude",
            Self::Waiting => "waiting",
            Self::Interrupted => "interrupted",
        }
    }

    /// Combines the exit statuses of several chains, in any order. A status that affects all chains takes precedence.
    pub(crate) fn or_worse(self, other: Self) -> Self {
        let badness = |exit| match exit {
            Self::Ok => 0,
            Self::Waiting => 1,
            Self::Failed => 2,
            Self::Usage => 3,
            Self::NoSuchFrame => 4,
            Self::Claude => 5,
            Self::Interrupted => 6,
        };
        if badness(other) > badness(self) { other } else { self }
    }
}

/// The end of `--help`: the environment, exit statuses and examples.
pub(crate) const HELP: &str = "\
Environment:
  AGENT_CLI_STATE_DIR        where chains are kept
  AGENT_CLI_STORE            the PostgreSQL server that records them, unless --store names one
  AGENT_CLI_CONFIG           the config file: agent-cli config
  AGENT_CLI_CLAUDE           the claude program, unless --claude is given
  AGENT_CLI_PERMISSION_MODE  the default of --permission-mode
  AGENT_CLI_LOG              log filter: debug, agent=ID, agent_cli::runtime=trace

Exit status:
    0  done, or waiting
    1  the agent failed
    2  wrong usage, or the request was refused
    3  no such agent or question
    4  claude is missing, unusable, or refused to start
   75  waiting (with --exit-code, and in an agent that has no result yet)
  130  interrupted

Examples:
  agent-cli spawn --prompt 'Ask me which colour I like.'
  agent-cli spawn task.md
  agent-cli ls
  agent-cli inbox";

impl From<ExitStatus> for ExitCode {
    fn from(exit: ExitStatus) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_status_counts_in_whatever_order_chains_end() {
        use ExitStatus::{Claude, Failed, Interrupted, NoSuchFrame, Ok, Usage, Waiting};
        let all = [Ok, Waiting, Failed, Usage, NoSuchFrame, Claude, Interrupted];
        for one in all {
            for other in all {
                assert_eq!(one.or_worse(other), other.or_worse(one));
            }
        }
        assert_eq!(
            [Failed.or_worse(Claude), Waiting.or_worse(Failed), Ok.or_worse(Waiting)],
            [Claude, Failed, Waiting]
        );
    }
}

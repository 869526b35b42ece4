//! Changes that a person makes to the launch options of a chain.

use std::path::PathBuf;

use crate::core::agent::claude_args::{ClaudeArgs, PROMPT_TOOL};
use crate::core::agent::launch::Launch;

/// Changes that a person makes to the launch options of a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// Absolute.
    pub claude: Option<PathBuf>,
    pub model: Option<String>,
    pub permission_mode: Option<String>,
    /// Absolute, without links.
    pub questions_dir: Option<PathBuf>,
    /// Replaces all arguments for `claude` that were given before.
    pub args: Option<ClaudeArgs>,
}

impl Launch {
    /// The repaired options of a frame. It keeps what it asked to have different from `top`, the first agent of its
    /// chain.
    pub(crate) fn repaired(self, top: &Self, repair: &Repair) -> Self {
        fn other<T: PartialEq>(own: T, top: &T, new: Option<T>) -> T {
            if own == *top { new.unwrap_or(own) } else { own }
        }
        let Repair { claude, model, permission_mode, questions_dir, args } = repair.clone();
        let args = match (args, self.args.behind(&top.args)) {
            (Some(args), Some(own)) => args.and(&own),
            _ => self.args.clone(),
        };
        let repaired = Self {
            claude: other(self.claude, &top.claude, claude),
            model: other(self.model, &top.model, model.map(Some)),
            permission_mode: other(self.permission_mode, &top.permission_mode, permission_mode.map(Some)),
            questions_dir: other(self.questions_dir, &top.questions_dir, questions_dir.map(Some)),
            args,
            ..self
        };
        // A tool that its conversation did not begin with is not added; one that would receive others' questions is
        // removed.
        Self { native_questions: self.native_questions && !repaired.args.has(PROMPT_TOOL), ..repaired }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &[&str]) -> ClaudeArgs {
        ClaudeArgs::of(words)
    }

    #[test]
    fn a_repair_is_for_those_who_have_what_the_first_agent_has() {
        let top = Launch { model: Some("opus".into()), args: args(&["--nonsense"]), ..Launch::default() };
        let repair = Repair {
            model: Some("haiku".into()),
            permission_mode: Some("plan".into()),
            args: Some(args(&["--max-turns=5"])),
            claude: Some("/new/claude".into()),
            questions_dir: Some("/q".into()),
        };
        let child = Launch { args: args(&["--nonsense", "--effort=low"]), ..top.clone() };
        let repaired = child.repaired(&top, &repair);
        assert_eq!(repaired.args.words(), ["--max-turns=5", "--effort=low"]);
        assert_eq!((repaired.model.as_deref(), repaired.permission_mode.as_deref()), (Some("haiku"), Some("plan")));
        assert_eq!(
            (Some(repaired.claude), repaired.questions_dir),
            (repair.claude.clone(), repair.questions_dir.clone())
        );
        let own = Launch { model: Some("sonnet".into()), permission_mode: Some("dontAsk".into()), ..top.clone() };
        let repaired = own.clone().repaired(&top, &repair);
        assert_eq!((repaired.model, repaired.permission_mode), (own.model, own.permission_mode));
        assert_eq!(top.clone().repaired(&top, &Repair::default()), top);
    }
}

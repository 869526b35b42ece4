//! Which variables log in, to Claude Code's own API or to a cloud.

/// Variables in the list that are sufficient for a login. The other login variables only accompany one.
pub(crate) const LOGS_IN: [&str; 6] = [
    "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_IDENTITY_TOKEN", "ANTHROPIC_IDENTITY_TOKEN_FILE",
    "CLAUDE_CODE_OAUTH_REFRESH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN",
];

/// Prefixes of the switches that select a cloud's login.
const SWITCH: &str = "CLAUDE_CODE_USE_";

/// A cloud that `claude` can log in to.
#[derive(Debug)]
pub(crate) struct Cloud {
    /// The switch that selects it.
    pub(crate) switches: &'static [&'static str],
    /// Variables each of which holds or names its credentials.
    pub(crate) credentials: &'static [&'static str],
    /// Where the cloud's own tools keep credentials, in the home directory.
    pub(crate) kept: &'static str,
}

pub(crate) const CLOUDS: [Cloud; 3] = [
    Cloud {
        switches: &["CLAUDE_CODE_USE_ANTHROPIC_AWS", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_MANTLE"],
        credentials: &[
            "ANTHROPIC_AWS_API_KEY", "AWS_ACCESS_KEY_ID", "AWS_BEARER_TOKEN_BEDROCK", "AWS_PROFILE",
            "AWS_WEB_IDENTITY_TOKEN_FILE",
        ],
        kept: ".aws",
    },
    Cloud {
        switches: &["CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD", "CLAUDE_CODE_USE_VERTEX"],
        credentials: &["GOOGLE_APPLICATION_CREDENTIALS"],
        kept: ".config/gcloud/application_default_credentials.json",
    },
    Cloud {
        switches: &["CLAUDE_CODE_USE_FOUNDRY"],
        credentials: &[
            "ANTHROPIC_FOUNDRY_API_KEY", "ANTHROPIC_FOUNDRY_AUTH_TOKEN", "AZURE_CLIENT_CERTIFICATE_PATH",
            "AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE",
        ],
        kept: ".azure",
    },
];

/// Whether Claude Code would consider a variable with this value set: a switch may be off.
pub(crate) fn is_set(name: &str, value: &str) -> bool {
    let is_on = || ["1", "true", "yes", "on"].contains(&value.trim().to_lowercase().as_str());
    if name.starts_with(SWITCH) { is_on() } else { !value.is_empty() }
}

/// Whether a variable, if set, logs `claude` in or selects a cloud's login.
pub(crate) fn logs_in(name: &str) -> bool {
    LOGS_IN.contains(&name) || cloud(name).is_some()
}

/// The cloud whose login a variable selects if set.
pub(crate) fn cloud(name: &str) -> Option<&'static Cloud> {
    CLOUDS.iter().find(|cloud| cloud.switches.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_may_be_off() {
        let switch = |value| is_set("CLAUDE_CODE_USE_BEDROCK", value);
        assert_eq!(["1", "true", "On", "0", "false", ""].map(switch), [true, true, true, false, false, false]);
        assert!(is_set("ANTHROPIC_API_KEY", "0") && !is_set("ANTHROPIC_API_KEY", ""));
    }
}

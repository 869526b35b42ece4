//! Which variables log in, to Claude Code's own API or to a cloud, and which of them matter to an agent.

use crate::claude::environment::inherited::{is_its_own, is_listed};

/// Those in the list that are a login by themselves. The other login variables only accompany one.
const LOGS_IN: [&str; 6] = [
    "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_IDENTITY_TOKEN", "ANTHROPIC_IDENTITY_TOKEN_FILE",
    "CLAUDE_CODE_OAUTH_REFRESH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN",
];

/// Prefixes of the switches that select a cloud's login.
const SWITCH: &str = "CLAUDE_CODE_USE_";

/// A cloud that `claude` can log in to.
#[derive(Debug)]
pub(crate) struct Cloud {
    /// The switch that selects it.
    switches: &'static [&'static str],
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

/// Prefixes of cloud variables that are not Claude Code's own.
const OF_CLOUDS: [&str; 6] = ["AWS_", "AZURE_", "CLOUD_ML_", "GCLOUD_", "GOOGLE_", "VERTEX_REGION_"];

/// Network variables that are not Claude Code's own. The names of proxies may be in lower case.
const OF_NETWORK: [&str; 8] = [
    "ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NODE_EXTRA_CA_CERTS", "NODE_USE_SYSTEM_CA", "NO_PROXY", "SSL_CERT_DIR",
    "SSL_CERT_FILE",
];

/// Whether Claude Code would consider a variable with this value set: a switch may be off.
pub(crate) fn is_set(name: &str, value: &str) -> bool {
    let is_on = || ["1", "true", "yes", "on"].contains(&value.trim().to_lowercase().as_str());
    if name.starts_with(SWITCH) { is_on() } else { !value.is_empty() }
}

/// Whether a variable, if set, logs `claude` in or selects a cloud's login.
pub(crate) fn logs_in(name: &str) -> bool {
    LOGS_IN.contains(&name) || is_switch(name)
}

fn is_switch(name: &str) -> bool {
    name.starts_with(SWITCH) && is_listed(name)
}

/// The cloud whose login a variable selects if set.
pub(crate) fn cloud(name: &str) -> Option<&'static Cloud> {
    CLOUDS.iter().find(|cloud| cloud.switches.contains(&name))
}

/// Whether an agent would work differently, or not at all, without this variable. `in_cloud`: whether it logs in to a cloud.
pub(crate) fn matters(name: &str, in_cloud: bool) -> bool {
    let of_cloud = || OF_CLOUDS.iter().any(|family| name.starts_with(family));
    let of_network = || OF_NETWORK.contains(&name.to_uppercase().as_str());
    is_its_own(name) && is_listed(name) || of_network() || in_cloud && of_cloud()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claude::environment::inherited::{INHERITED, is_inherited};

    #[test]
    fn what_logs_in_is_inherited_and_every_switch_leads_to_a_cloud() {
        assert!(LOGS_IN.iter().all(|name| is_listed(name)));
        let listed = INHERITED.iter().flat_map(|(_, names)| names.iter().copied()).filter(|name| logs_in(name));
        let (switches, others): (Vec<&str>, Vec<&str>) = listed.partition(|name| is_switch(name));
        assert_eq!(others.len(), LOGS_IN.len());
        assert!(switches.iter().all(|name| cloud(name).is_some()));
        assert_eq!(switches.len(), CLOUDS.iter().map(|cloud| cloud.switches.len()).sum::<usize>());
        let credentials = CLOUDS.iter().flat_map(|cloud| cloud.credentials);
        assert!(credentials.clone().all(|name| is_inherited(name) && matters(name, true)));
    }

    #[test]
    fn a_switch_may_be_off() {
        let switch = |value| is_set("CLAUDE_CODE_USE_BEDROCK", value);
        assert_eq!(["1", "true", "On", "0", "false", ""].map(switch), [true, true, true, false, false, false]);
        assert!(is_set("ANTHROPIC_API_KEY", "0") && !is_set("ANTHROPIC_API_KEY", ""));
    }

    #[test]
    fn what_matters_is_claude_codes_the_networks_and_the_clouds() {
        for name in ["ANTHROPIC_BASE_URL", "https_proxy", "NODE_EXTRA_CA_CERTS", "CLAUDE_CODE_SHELL"] {
            assert!(matters(name, false), "{name}");
        }
        for name in ["EDITOR", "CLAUDECODE", "CLAUDE_CODE_SIMPLE", "AWS_REGION"] {
            assert!(!matters(name, false), "{name}");
        }
        assert!(matters("AWS_REGION", true));
    }
}

//! Which part of a login exists only in the environment.

use std::path::PathBuf;

use crate::claude::environment::agent_variables;
use crate::claude::environment::config_dir::CONFIG_DIR;
use crate::claude::environment::credentials::{self, Cloud};
use crate::claude::environment::variables::Variables;
use crate::claude::settings::settings_file::ClaudeSettings;

/// What exists independently of the environment.
#[derive(Debug)]
pub(crate) struct Durable<'a> {
    /// The settings that can be read.
    pub(crate) settings: Vec<&'a ClaudeSettings>,
    /// Whether Claude Code keeps a login in its configuration directory.
    pub(crate) is_kept: bool,
    /// The names of the variables that the chain has recorded.
    pub(crate) recorded: Vec<&'a str>,
    /// Where the clouds' own tools keep their credentials.
    pub(crate) home: Option<PathBuf>,
}

impl Durable<'_> {
    /// The variables that matter to agents, that no settings set, and that the chain has not recorded.
    pub(crate) fn missing(&self, variables: &Variables) -> Vec<String> {
        let in_cloud = variables.set().chain(self.variables()).any(|name| credentials::cloud(name).is_some());
        // Each frame records the configuration directory.
        let matters = |name: &&str| agent_variables::matters(name, in_cloud) && *name != CONFIG_DIR;
        variables.set().filter(matters).filter(|name| !self.sets(name)).map(str::to_owned).collect()
    }

    /// The variables that log in, or that switch to the login of a cloud, and that no settings set.
    pub(crate) fn missing_logins(&self, variables: &Variables) -> Vec<String> {
        let here = variables.set().filter(|name| credentials::logs_in(name) && !self.sets(name));
        here.map(str::to_owned).collect()
    }

    /// The variables without which there is no login. Empty if another login exists, or none at all.
    pub(crate) fn login_only_in(&self, variables: &Variables) -> Vec<String> {
        let lasting = self.variables().find_map(credentials::cloud);
        if let Some(cloud) = lasting {
            return if self.keeps_credentials(cloud) { Vec::new() } else { credentials(cloud, variables) };
        }
        if self.is_kept || self.settings.iter().any(|settings| !settings.logins.is_empty()) {
            return Vec::new();
        }
        let mut here = self.missing_logins(variables);
        let clouds: Vec<_> = here.iter().filter_map(|name| credentials::cloud(name)).collect();
        for name in clouds.into_iter().flat_map(|cloud| credentials(cloud, variables)) {
            if !here.contains(&name) && !self.sets(&name) {
                here.push(name);
            }
        }
        here
    }

    fn keeps_credentials(&self, cloud: &Cloud) -> bool {
        self.settings.iter().any(|settings| settings.logs_in_to_cloud)
            || cloud.credentials.iter().any(|name| self.sets(name))
            || self.home.as_ref().is_some_and(|home| home.join(cloud.kept).exists())
    }

    fn variables(&self) -> impl Iterator<Item = &str> {
        let set = self.settings.iter().flat_map(|settings| &settings.variables).map(String::as_str);
        set.chain(self.recorded.iter().copied())
    }

    fn sets(&self, name: &str) -> bool {
        self.variables().any(|set| set == name)
    }
}

fn credentials(cloud: &Cloud, variables: &Variables) -> Vec<String> {
    variables.set().filter(|name| cloud.credentials.contains(name)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only_here(variables: &[(&str, &str)], settings: &str, is_kept: bool) -> String {
        let settings = ClaudeSettings::parse(settings).unwrap();
        let durable = Durable { settings: vec![&settings], is_kept, recorded: Vec::new(), home: None };
        durable.login_only_in(&variables.iter().copied().collect()).join(" ")
    }

    #[test]
    fn a_login_lasts_in_a_file_and_not_in_the_environment() {
        let key = [("ANTHROPIC_API_KEY", "secret"), ("EDITOR", "vi")];
        assert_eq!(only_here(&key, "{}", false), "ANTHROPIC_API_KEY");
        assert_eq!(only_here(&key, "{}", true), "");
        assert_eq!(only_here(&key, r#"{"env": {"ANTHROPIC_API_KEY": ""}}"#, false), "ANTHROPIC_API_KEY");
        for settings in [
            r#"{"env": {"ANTHROPIC_API_KEY": "x"}}"#, r#"{"env": {"ANTHROPIC_AUTH_TOKEN": "x"}}"#,
            r#"{"apiKeyHelper": "x"}"#,
        ] {
            assert_eq!(only_here(&key, settings, false), "", "{settings}");
        }
        assert_eq!(only_here(&[("ANTHROPIC_API_KEY", "")], "{}", false), "");
        assert_eq!(only_here(&[], "{}", false), "", "there is none at all");
    }

    #[test]
    fn the_login_of_a_cloud_is_a_switch_and_credentials() {
        let (on, off) = (("CLAUDE_CODE_USE_BEDROCK", "1"), ("CLAUDE_CODE_USE_BEDROCK", "0"));
        let key = ("AWS_ACCESS_KEY_ID", "secret");
        assert_eq!(only_here(&[on, key], "{}", false), "CLAUDE_CODE_USE_BEDROCK AWS_ACCESS_KEY_ID");
        assert_eq!(only_here(&[off, key], "{}", false), "");
        let switched = r#"{"env": {"CLAUDE_CODE_USE_BEDROCK": "1"}}"#;
        assert_eq!(only_here(&[key], switched, false), "AWS_ACCESS_KEY_ID");
        assert_eq!(only_here(&[key], switched, true), "AWS_ACCESS_KEY_ID");
        assert_eq!(only_here(&[("AZURE_CLIENT_SECRET", "secret")], switched, false), "", "another cloud's");
        let with_helper = r#"{"env": {"CLAUDE_CODE_USE_BEDROCK": "1"}, "awsCredentialExport": "x"}"#;
        assert_eq!(only_here(&[key], with_helper, false), "");
        let with_profile = r#"{"env": {"CLAUDE_CODE_USE_BEDROCK": "1", "AWS_PROFILE": "x"}}"#;
        assert_eq!(only_here(&[key], with_profile, false), "");
    }

    #[test]
    fn what_settings_set_is_not_missing() {
        let settings = ClaudeSettings::parse(r#"{"env": {"ANTHROPIC_BASE_URL": "x"}}"#).unwrap();
        let durable = |recorded| Durable { settings: vec![&settings], is_kept: false, recorded, home: None };
        let variables =
            ["ANTHROPIC_BASE_URL", "AWS_REGION", "CLAUDE_CONFIG_DIR", "https_proxy"].map(|name| (name, "x"));
        assert_eq!(durable(vec![]).missing(&variables.into_iter().collect()), ["https_proxy"]);
        let in_cloud = variables.into_iter().chain([("CLAUDE_CODE_USE_BEDROCK", "1")]).collect();
        assert_eq!(durable(vec![]).missing(&in_cloud), ["AWS_REGION", "CLAUDE_CODE_USE_BEDROCK", "https_proxy"]);
        let recorded = vec!["AWS_REGION", "CLAUDE_CODE_USE_BEDROCK"];
        assert_eq!(durable(recorded).missing(&in_cloud), ["https_proxy"]);
    }

    #[test]
    fn of_a_login_to_a_cloud_the_chain_has_a_record_of_all_but_the_secret() {
        let variables = [("AWS_ACCESS_KEY_ID", "secret"), ("AWS_PROFILE", "work"), ("CLAUDE_CODE_USE_BEDROCK", "1")];
        let missing = |recorded, variables: &[(&str, &str)]| {
            let durable = Durable { settings: Vec::new(), is_kept: false, recorded, home: None };
            durable.login_only_in(&variables.iter().copied().collect())
        };
        let switch = vec!["CLAUDE_CODE_USE_BEDROCK"];
        assert_eq!(missing(switch.clone(), &[variables[0], variables[2]]), ["AWS_ACCESS_KEY_ID"]);
        assert_eq!(missing([switch, vec!["AWS_PROFILE"]].concat(), &variables[1..]), [""; 0]);
    }
}

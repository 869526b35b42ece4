//! Merges layers of settings: a later layer takes precedence over an earlier one.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::app::config::setting::{InProject, SETTINGS, STORE, Setting};
use crate::app::config::value::SettingValue;
use crate::core::agent::permission_mode;
use crate::core::agent::usage::prices::Prices;
use crate::store::Store;

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ValueSource {
    Default,
    /// The user's file.
    User(PathBuf),
    /// The project's file.
    Project(PathBuf),
    Variable(&'static str),
}

/// The settings of one file, or of the environment.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub values: BTreeMap<&'static str, (SettingValue, ValueSource)>,
    /// Whether its values take effect without restrictions. Values of other layers can only narrow the settings below them.
    pub is_trusted: bool,
}

/// A value of a project's file that has no effect.
#[derive(Clone, Debug)]
pub(crate) struct Ignored {
    pub setting: &'static Setting,
    pub value: SettingValue,
    /// Whether it would take effect if the user trusted the file.
    pub needs_trust: bool,
}

/// The settings in effect.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    values: BTreeMap<&'static str, (SettingValue, ValueSource)>,
    pub ignored: Vec<Ignored>,
}

impl Settings {
    /// Merges the layers, the lowest first.
    pub(crate) fn resolve(layers: Vec<Layer>) -> Self {
        let mut settings = Self::default();
        for Layer { values, is_trusted } in layers {
            for setting in SETTINGS {
                let Some((value, origin)) = values.get(setting.key) else { continue };
                let below = settings.value(setting);
                let is_project = matches!(origin, ValueSource::Project(_));
                let is_possible = !is_project || setting.in_project != InProject::Never;
                if is_possible && (is_trusted || may_narrow(setting.in_project, value, below.as_ref())) {
                    settings.values.insert(setting.key, (value.clone(), origin.clone()));
                } else {
                    let ignored = Ignored { setting, value: value.clone(), needs_trust: is_possible };
                    settings.ignored.push(ignored);
                }
            }
        }
        settings
    }

    /// The value, if it is set.
    pub(crate) fn given(&self, setting: &Setting) -> Option<&SettingValue> {
        self.values.get(setting.key).map(|(value, _)| value)
    }

    /// The value, or else the default.
    pub(crate) fn value(&self, setting: &Setting) -> Option<SettingValue> {
        self.given(setting).cloned().or_else(|| setting.default_value())
    }

    pub(crate) fn origin(&self, setting: &Setting) -> &ValueSource {
        self.values.get(setting.key).map_or(&ValueSource::Default, |(_, origin)| origin)
    }

    /// The value for a list of settings, without a password.
    pub(crate) fn shown(&self, setting: &Setting) -> Option<SettingValue> {
        self.value(setting).map(|value| without_password(setting, value))
    }

    /// The text or path, if it is set.
    pub(crate) fn text(&self, setting: &Setting) -> Option<String> {
        self.given(setting)?.text().map(str::to_owned)
    }

    pub(crate) fn is_on(&self, setting: &Setting) -> bool {
        self.given(setting) == Some(&SettingValue::Switch(true))
    }

    /// The number, if it is set. Limits have 32 bits.
    pub(crate) fn count(&self, setting: &Setting) -> Option<u32> {
        if let SettingValue::Count(count) = self.given(setting)? { u32::try_from(*count).ok() } else { None }
    }

    pub(crate) fn dollars(&self, setting: &Setting) -> Option<f64> {
        self.given(setting)?.amount()
    }

    /// The duration in seconds, if it is set.
    pub(crate) fn seconds(&self, setting: &Setting) -> Option<u64> {
        if let SettingValue::Duration(time) = self.given(setting)? { Some(time.as_secs().unsigned_abs()) } else { None }
    }

    pub(crate) fn prices(&self, setting: &Setting) -> Prices {
        if let Some(SettingValue::Prices(prices)) = self.given(setting) { prices.clone() } else { Prices::default() }
    }

    pub(crate) fn words(&self, setting: &Setting) -> Vec<String> {
        if let Some(SettingValue::Words(words)) = self.given(setting) { words.clone() } else { Vec::new() }
    }
}

/// Whether a value of an untrusted file takes effect. `below` is the value without it, or `None` if there is no bound.
fn may_narrow(in_project: InProject, value: &SettingValue, below: Option<&SettingValue>) -> bool {
    match in_project {
        InProject::Always => true,
        InProject::AtMost => below.is_none_or(|below| value.is_at_most(below)),
        InProject::NarrowerMode => {
            let own = below.and_then(SettingValue::text).unwrap_or(permission_mode::DEFAULT);
            value.text().is_some_and(|mode| permission_mode::covers(own, mode))
        }
        InProject::Only(only) => value.to_string() == only,
        InProject::Trusted | InProject::Never => false,
    }
}

/// The value of a setting for people, who may show their screen to others.
pub(crate) fn without_password(setting: &Setting, value: SettingValue) -> SettingValue {
    let Some(address) = value.text().filter(|_| setting.key == STORE.key) else { return value };
    SettingValue::Text(Store::place_of(address).unwrap_or_else(|_| "an address that is not valid".to_owned()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::app::config::setting::{
        CLAUDE, MAX_AGENTS, MAX_BUDGET_USD, MODEL, ON_PERMISSION, PERMISSION_MODE, STATE_DIR, WORKTREE,
    };

    fn layer(origin: &ValueSource, is_trusted: bool, values: &[(&'static Setting, &str)]) -> Layer {
        let values = values.iter().map(|(setting, text)| {
            (setting.key, (SettingValue::from_text(setting.kind, text).unwrap(), origin.clone()))
        });
        Layer { values: values.collect(), is_trusted }
    }

    fn user(values: &[(&'static Setting, &str)]) -> Layer {
        layer(&ValueSource::User("/u".into()), true, values)
    }

    fn project(is_trusted: bool, values: &[(&'static Setting, &str)]) -> Layer {
        layer(&ValueSource::Project("/p".into()), is_trusted, values)
    }

    fn variable(values: &[(&'static Setting, &str)]) -> Layer {
        layer(&ValueSource::Variable("V"), true, values)
    }

    #[test]
    fn a_later_layer_counts_and_is_named() {
        let model = |layers| {
            let settings = Settings::resolve(layers);
            (settings.text(&MODEL), settings.origin(&MODEL).clone())
        };
        assert_eq!(model(vec![]), (None, ValueSource::Default));
        let [low, middle, high] =
            [user(&[(&MODEL, "a")]), project(false, &[(&MODEL, "b")]), variable(&[(&MODEL, "c")])];
        assert_eq!(model(vec![low.clone()]), (Some("a".into()), ValueSource::User("/u".into())));
        assert_eq!(model(vec![low.clone(), middle.clone()]), (Some("b".into()), ValueSource::Project("/p".into())));
        assert_eq!(model(vec![low, middle, high]), (Some("c".into()), ValueSource::Variable("V")));
    }

    #[test]
    fn a_project_narrows_and_never_widens() {
        for (setting, low, value, counts) in [
            (&MAX_AGENTS, None, "256", true),
            (&MAX_AGENTS, None, "257", false),
            (&MAX_AGENTS, Some("500"), "400", true),
            (&MAX_AGENTS, Some("5"), "6", false),
            (&MAX_BUDGET_USD, None, "1000000", true),
            (&MAX_BUDGET_USD, Some("2"), "2.01", false),
            (&PERMISSION_MODE, None, "plan", true),
            (&PERMISSION_MODE, None, "acceptEdits", false),
            (&PERMISSION_MODE, Some("acceptEdits"), "default", true),
            (&PERMISSION_MODE, Some("bypassPermissions"), "a-mode-of-tomorrow", true),
            (&PERMISSION_MODE, Some("acceptEdits"), "a-mode-of-tomorrow", false),
            (&ON_PERMISSION, None, "ask", false),
            (&ON_PERMISSION, Some("ask"), "deny", true),
            (&WORKTREE, None, "true", true),
            (&WORKTREE, Some("true"), "false", false),
            (&CLAUDE, None, "/bin/evil", false),
        ] {
            let layers = |is_trusted| {
                let low = low.map(|low| user(&[(setting, low)]));
                low.into_iter().chain([project(is_trusted, &[(setting, value)])]).collect()
            };
            for (is_trusted, counts) in [(false, counts), (true, true)] {
                let settings = Settings::resolve(layers(is_trusted));
                let is_used = matches!(settings.origin(setting), ValueSource::Project(_));
                assert_eq!(
                    (is_used, settings.ignored.len()),
                    (counts, usize::from(!counts)),
                    "{} {value}",
                    setting.key
                );
            }
        }
        let settings = Settings::resolve(vec![project(true, &[(&STATE_DIR, "/elsewhere")])]);
        assert_eq!(settings.given(&STATE_DIR), None);
        assert!(!settings.ignored[0].needs_trust);
    }

    proptest! {
        #[test]
        fn no_limit_is_above_that_of_the_user(own in proptest::option::of(1..600u32), theirs in 1..600u32) {
            let own_text = own.map(|own| own.to_string());
            let low = own_text.as_deref().map(|own| user(&[(&MAX_AGENTS, own)]));
            let text = theirs.to_string();
            let layers = low.into_iter().chain([project(false, &[(&MAX_AGENTS, text.as_str())])]).collect();
            let found = Settings::resolve(layers).value(&MAX_AGENTS);
            prop_assert_eq!(found, Some(SettingValue::Count(own.unwrap_or(256).min(theirs).into())));
        }
    }
}

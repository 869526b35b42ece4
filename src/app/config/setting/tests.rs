use std::collections::BTreeSet;
use std::time::Duration;

use super::*;
use crate::core::agent::launch::Launch;
use crate::core::attempt::stop_steps::GRACE;
use crate::core::chain::limits::Limits;
use crate::core::notifications::occasion::Occasion;
use crate::core::requests::lingering;

#[test]
fn every_default_is_a_value_and_every_key_is_unique() {
    for setting in SETTINGS {
        assert_eq!(setting.default.is_some(), setting.default_value().is_some(), "{}", setting.key);
    }
    assert_eq!(SETTINGS.iter().map(|setting| setting.key).collect::<BTreeSet<_>>().len(), SETTINGS.len());
    for event in Occasion::ALL {
        let setting = Setting::named(&format!("on.{}", event.name()));
        assert_eq!(setting.map(|setting| setting.kind), Some(Kind::Command), "{event:?}");
    }
}

#[test]
fn the_defaults_are_those_that_count() {
    let seconds = |setting: &Setting| match setting.default_value() {
        Some(SettingValue::Duration(duration)) => Duration::try_from(duration).unwrap(),
        other => panic!("{other:?}"),
    };
    let count = |setting: &Setting| match setting.default_value() {
        Some(SettingValue::Count(count)) => u32::try_from(count).unwrap(),
        other => panic!("{other:?}"),
    };
    let limits = Limits::default();
    assert_eq!(seconds(&STOP_GRACE), GRACE);
    assert_eq!(seconds(&LINGER), lingering::LINGER);
    assert_eq!(seconds(&BACKGROUND_GRACE), Launch::default().background_grace());
    assert_eq!(seconds(&STALL_AFTER), Duration::try_from(limits.stall_after()).unwrap());
    assert_eq!(count(&MAX_DEPTH), limits.max_depth);
    assert_eq!(count(&MAX_PARALLEL), limits.max_parallel);
}

#[test]
fn a_misspelt_key_has_a_suggestion() {
    assert_eq!(Setting::similar_to("spawn.modle"), Some("spawn.model"));
    assert_eq!(Setting::similar_to("max-agent"), Some("limits.max-agents"));
    assert_eq!(Setting::similar_to("on.quesiton"), Some("on.question"));
    assert_eq!(Setting::similar_to("zzz"), None);
}

//! Which settings of git name programs: those of a repository do not count, because agents can change them.

use std::collections::{BTreeMap, BTreeSet};

use super::{is_of_person, settings};

/// Overrides for the settings in this list that name a program and belong to the repository: the person's own, or nothing. They are read
/// after the files, so they win.
pub(super) fn overriding(list: &str) -> Vec<(String, String)> {
    let mut persons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    // Without this setting, git looks for hooks in the repository.
    let mut repositorys = BTreeSet::from([HOOKS.to_owned()]);
    for (scope, name, value) in settings(list) {
        // A relative folder is in the repository.
        let is_persons = is_of_person(scope) && (name != HOOKS || value.starts_with(['/', '~']));
        if !names_a_program(name) {
            continue;
        }
        if is_persons {
            persons.entry(name).or_default().push(value);
        } else {
            repositorys.insert(name.to_owned());
        }
    }
    // A hook of the configuration is run because of its event.
    let hooks = repositorys.iter().filter_map(|name| Some(name.strip_prefix("hook.")?.rsplit_once('.')?.0.to_owned()));
    let disabled: Vec<String> = hooks.map(|hook| format!("hook.{hook}.enabled")).collect();
    repositorys.extend(disabled);
    let mut overriding = Vec::new();
    for name in repositorys {
        let own = persons.get(name.as_str());
        // The empty value ends a list of helpers that the repository has begun.
        if own.is_none() || name.ends_with(".helper") {
            overriding.push((name.clone(), harmless_value(&name).to_owned()));
        }
        overriding.extend(own.into_iter().flatten().map(|value| (name.clone(), (*value).to_owned())));
    }
    overriding
}

/// The setting that says where hooks are.
const HOOKS: &str = "core.hookspath";

fn harmless_value(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("hookspath") => "/dev/null",
        Some("required" | "enabled") => "false",
        Some("sshcommand") => "ssh",
        _ => "",
    }
}

/// Whether a setting names a program, or decides whether one is run.
fn names_a_program(name: &str) -> bool {
    const PROGRAMS: [&str; 24] = [
        "alternaterefscommand", "askpass", "clean", "cmd", "command", "driver", "editor", "enabled", "external",
        "fsmonitor", "gitproxy", "helper", "hookspath", "packobjectshook", "pager", "process", "program",
        "receivepack", "required", "smudge", "sshcommand", "textconv", "uploadpack", "vcs",
    ];
    const SECTIONS: [&str; 11] = [
        "core", "credential", "diff", "filter", "gpg", "hook", "interactive", "merge", "remote", "sequence",
        "uploadpack",
    ];
    let section = name.split('.').next().unwrap_or_default();
    let last = name.rsplit('.').next().unwrap_or_default();
    SECTIONS.contains(&section) && PROGRAMS.contains(&last)
}

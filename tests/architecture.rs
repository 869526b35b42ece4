//! The shape of the code: which part may import which.
//!
//! `main → cli → runtime → {claude, store} → core`; all but `core` name their durable steps to `failpoint`. An arrow that points back would let a rule hide where its name does
//! not lead.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What each part may import of the others.
const MAY_IMPORT: [(&str, &[&str]); 6] = [
    ("core", &[]),
    ("failpoint", &[]),
    ("claude", &["core", "failpoint"]),
    ("store", &["core", "failpoint"]),
    ("runtime", &["claude", "core", "failpoint", "store"]),
    ("cli", &["claude", "core", "failpoint", "runtime", "store"]),
];

/// The crate as a whole: no parts of it.
const WHOLE: [&str; 2] = ["lib", "main"];

/// What the pure part must not touch, and why a name is enough to tell.
const EFFECTS: [&str; 8] =
    ["std::fs", "std::env", "std::process", "std::net", "std::thread", "tokio", "Timestamp::now", "SystemTime"];

/// A file longer than this holds more than one thing.
const LONGEST: usize = 400;

#[test]
fn imports_point_one_way() {
    for (part, allowed) in MAY_IMPORT {
        for file in part_files(part) {
            for imported in parts_named_in(&fs::read_to_string(&file).unwrap()) {
                let fine = imported == part || allowed.contains(&imported.as_str());
                assert!(fine, "{} imports {imported}, and {part} may import only {allowed:?}", file.display());
            }
        }
    }
}

#[test]
fn every_part_has_a_rule() {
    let parts: BTreeSet<_> = fs::read_dir(sources())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|name| !WHOLE.contains(&name.as_str()))
        .collect();
    assert_eq!(parts, MAY_IMPORT.map(|(part, _)| part.to_owned()).into());
}

#[test]
fn the_rules_are_free_of_effects() {
    for file in files(&sources().join("core")) {
        let text = fs::read_to_string(&file).unwrap();
        for effect in EFFECTS {
            assert!(!text.contains(effect), "{} uses {effect}", file.display());
        }
    }
}

#[test]
fn only_the_store_knows_sql() {
    for part in ["core", "claude", "runtime", "cli"] {
        for file in files(&sources().join(part)) {
            assert!(!fs::read_to_string(&file).unwrap().contains("rusqlite"), "{} uses rusqlite", file.display());
        }
    }
}

#[test]
fn files_are_short() {
    for file in files(&sources()) {
        let lines = fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines <= LONGEST, "{} has {lines} lines", file.display());
    }
}

#[test]
fn examples_carry_the_convention_as_it_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let template = fs::read_to_string(root.join("CLAUDE.md.template")).unwrap();
    for example in ["birthday", "release"] {
        let copy = root.join("examples").join(example).join("CLAUDE.md");
        assert_eq!(fs::read_to_string(&copy).unwrap(), template, "{} differs from the template", copy.display());
    }
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The files of a part, which is a folder or a file.
fn part_files(part: &str) -> Vec<PathBuf> {
    let file = sources().join(part).with_extension("rs");
    if file.is_file() { vec![file] } else { files(&sources().join(part)) }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// The parts that a source names, as `crate::part` or, in a part itself, as `super::super::part`.
fn parts_named_in(text: &str) -> BTreeSet<String> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut named = BTreeSet::new();
    for line in code {
        for start in ["crate::", "super::super::"] {
            for (at, _) in line.match_indices(start) {
                let name: String = line[at + start.len()..].chars().take_while(char::is_ascii_lowercase).collect();
                if MAY_IMPORT.iter().any(|(part, _)| *part == name) {
                    named.insert(name);
                }
            }
        }
    }
    named
}

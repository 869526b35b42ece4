//! The shape of the code: which part may import which, how large files and folders are, and that the map in
//! `docs/architecture.md` is complete.
//!
//! `main → cli → app → runtime → {claude, store} → core`; all but `core` name their durable steps to `failpoint`. An arrow that
//! points back would let a rule hide where its name does not lead.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What each part may import.
const MAY_IMPORT: [(&str, &[&str]); 10] = [
    ("core", &[]),
    ("failpoint", &[]),
    ("local_zone", &[]),
    ("claude", &["core", "failpoint"]),
    ("store", &["core", "failpoint", "local_zone"]),
    ("runtime", &["claude", "core", "failpoint", "local_zone", "store"]),
    ("app", &["claude", "core", "failpoint", "local_zone", "runtime", "store"]),
    ("mcp", &["app", "core", "runtime", "store"]),
    ("page", &["app", "core", "local_zone", "runtime", "store"]),
    // A command starts the server.
    ("cli", &["app", "claude", "core", "failpoint", "local_zone", "mcp", "page", "runtime", "store"]),
];

/// The crate as a whole: no parts of it.
const WHOLE: [&str; 3] = ["lib", "main", "records"];

/// Names that the pure part must not use, which are sufficient evidence.
const EFFECTS: [&str; 8] =
    ["std::fs", "std::env", "std::process", "std::net", "std::thread", "tokio", "Timestamp::now", "SystemTime"];

/// A file longer than this holds more than one thing.
const LONGEST: usize = 400;

/// A folder with more rooms than this has more than one concern.
const MOST_ROOMS: usize = 12;

/// The parts in whose folders no rooms import each other, whether directly or through others.
const WITHOUT_CIRCLES: [&str; 6] = ["store", "runtime", "app", "mcp", "page", "cli"];

/// The traits of a database, and the maximum number of operations of each. Operations that only select differently are one
/// operation with a selection.
const TRAITS: [(&str, usize); 5] = [("Records", 37), ("Outbox", 6), ("Housekeeping", 15), ("Hosts", 8), ("Changes", 3)];

/// Text that only occurs in a part that contains SQL.
const SQL: [&str; 8] =
    ["rusqlite", "SELECT ", "INSERT INTO ", "INSERT OR ", "DELETE FROM ", "CREATE TABLE ", "PRAGMA ", "UPDATE frames "];

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
fn only_its_folder_knows_sqlite() {
    let (store, sqlite) = (sources().join("store"), sources().join("store/sql"));
    for file in files(&sources()).into_iter().filter(|file| !file.starts_with(&sqlite)) {
        let text = fs::read_to_string(&file).unwrap();
        let found = SQL.iter().find(|sql| text.contains(**sql));
        assert_eq!(found, None, "{} knows SQL", file.display());
        let is_named = !file.starts_with(&store) && text.contains("store::sql");
        assert!(!is_named, "{} names store::sql", file.display());
    }
}

/// The databases have different functions for it.
#[test]
fn fields_of_json_that_are_queried_are_columns() {
    let sqlite = sources().join("store/sql");
    for file in files(&sqlite).iter().filter(|file| {
        !["migrations.rs", "server_tables.rs", "server_rights.rs"].iter().any(|tables| file.ends_with(tables))
    }) {
        let code = without_tests(&fs::read_to_string(file).unwrap());
        let functions = ["json_extract(", "json_type(", "json_valid(", "json_each(", "json_object(", "-> '$", "->> '"];
        let found = functions.into_iter().find(|function| code.contains(function));
        assert_eq!(found, None, "{} queries JSON", file.display());
    }
}

/// Files that parse JSON which was not written by Claude Code: settings, or files of this program or a person.
const PARSE_OTHERS: [&str; 9] = [
    "claude/settings/settings_file.rs", "claude/settings/merged.rs", "claude/settings/user_hooks.rs",
    "app/request/form_input.rs", "runtime/delivery/stale_files.rs", "store/sql/database/codec.rs",
    "store/housekeeping/archive/adapt.rs", "store/sql/housekeeping/export.rs", "store/housekeeping/archive/unpack.rs",
];

#[test]
fn lines_of_claude_code_have_one_reader() {
    for part in ["claude", "store", "runtime", "app", "cli"] {
        for file in files(&sources().join(part)).iter().filter(|file| !file.ends_with("tests.rs")) {
            let is_other = PARSE_OTHERS.iter().any(|other| sources().join(other) == *file);
            let code = without_tests(&fs::read_to_string(file).unwrap());
            let parses =
                ["serde_json::from_str", "serde_json::from_slice", "serde_json::from_reader", "Deserializer::from_"];
            let found = parses.iter().find(|call| !is_other && code.contains(**call));
            assert_eq!(
                found,
                None,
                "{} parses JSON: lines of Claude Code are read with core::text::json",
                file.display()
            );
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
fn folders_are_small() {
    let mut rooms = BTreeMap::<PathBuf, BTreeSet<_>>::new();
    for file in files(&sources()) {
        // A module that is both a file and a folder counts as one, and these files are the folder itself.
        let ancestors: Vec<_> = file.ancestors().take_while(|path| path.starts_with(sources())).collect();
        for pair in ancestors
            .windows(2)
            .filter(|pair| !["mod.rs", "lib.rs", "main.rs"].iter().any(|name| pair[0].ends_with(name)))
        {
            rooms.entry(pair[1].to_owned()).or_default().insert(pair[0].with_extension(""));
        }
    }
    for (folder, rooms) in rooms {
        assert!(rooms.len() <= MOST_ROOMS, "{} has {} rooms", folder.display(), rooms.len());
    }
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let imports = imports();
    assert!(imports.values().map(BTreeSet::len).sum::<usize>() > imports.len(), "the scan finds too few imports");
    let circle = circles(imports);
    assert!(circle.is_empty(), "these import each other: {circle:#?}");
}

#[test]
fn no_rooms_of_a_folder_import_each_other_in_a_circle() {
    let mut folders: BTreeMap<Vec<String>, BTreeMap<_, BTreeSet<_>>> = BTreeMap::new();
    for (name, imported) in imports() {
        for other in imported {
            let common = name.iter().zip(&other).take_while(|(one, other)| one == other).count();
            // A folder is not a room in itself.
            if let (Some(from), Some(to)) = (name.get(common), other.get(common)) {
                let rooms = folders.entry(name[..common].to_vec()).or_default();
                rooms.entry(from.clone()).or_default().insert(to.clone());
                rooms.entry(to.clone()).or_default();
            }
        }
    }
    for (folder, rooms) in folders.into_iter().filter(|(folder, _)| WITHOUT_CIRCLES.contains(&part_of(folder))) {
        let circle = circles(rooms);
        assert!(circle.is_empty(), "in {} these import each other: {circle:#?}", folder.join("/"));
    }
}

/// The first name of a module's path.
fn part_of(module: &[String]) -> &str {
    module.first().map_or("", String::as_str)
}

/// The modules that each module imports, tests left out.
fn imports() -> BTreeMap<Vec<String>, BTreeSet<Vec<String>>> {
    let modules: BTreeMap<_, _> = files(&sources()).into_iter().map(|file| (module(&file), file)).collect();
    let mut imports = BTreeMap::new();
    for (name, file) in modules.iter().filter(|(name, _)| !is_of_tests(name, &modules)) {
        let code = without_tests(&fs::read_to_string(file).unwrap());
        let paths = paths_in(&code).into_iter().filter_map(|path| absolute(&path, name));
        let imported = paths.filter_map(|path| containing(&path, &modules)).filter(|imported| imported != name);
        imports.insert(name.clone(), imported.collect());
    }
    imports
}

/// Whether a module, or one that contains it, is declared for tests only.
fn is_of_tests(name: &[String], modules: &BTreeMap<Vec<String>, PathBuf>) -> bool {
    (1..=name.len()).any(|length| {
        let (folder, last) = (&name[..length - 1], &name[length - 1]);
        let parent = modules.get(folder).map(|file| fs::read_to_string(file).unwrap()).unwrap_or_default();
        let lines: Vec<_> = parent.lines().collect();
        let declared = format!("mod {last};");
        lines.windows(2).any(|pair| pair[0] == "#[cfg(test)]" && pair[1].ends_with(&declared))
    })
}

/// Everything that is part of a circle, or between two.
fn circles<T: Ord + Clone>(mut imports: BTreeMap<T, BTreeSet<T>>) -> BTreeMap<T, BTreeSet<T>> {
    // A module that imports no other remaining module, or is imported by none, is not part of a circle.
    loop {
        let before = imports.len();
        let imported: BTreeSet<_> = imports.values().flatten().cloned().collect();
        imports.retain(|name, of_it| !of_it.is_empty() && imported.contains(name));
        let left: BTreeSet<_> = imports.keys().cloned().collect();
        imports.values_mut().for_each(|of_it| of_it.retain(|name| left.contains(name)));
        if imports.len() == before {
            return imports;
        }
    }
}

#[test]
fn the_import_scan_reads_what_rust_reads() {
    let code = "use crate::a::{self, b::C, d::{E, f::g as h}};\nfn x() { super::y::z(crate::v::W) }\n// crate::no\npub(in crate::no) fn y() {}\n";
    let found = ["crate::a", "crate::a::b::C", "crate::a::d::E", "crate::a::d::f::g", "super::y::z", "crate::v::W"];
    assert_eq!(paths_in(code), found.map(str::to_owned).into());
    assert_eq!(absolute("super::super::y", &["a".into(), "b".into()]), Some(vec!["y".to_owned()]));
    assert_eq!(absolute("crate::y", &["a".into()]), Some(vec!["y".to_owned()]));
    assert_eq!(absolute("std::fs", &["a".into()]), None);
}

#[test]
fn every_file_is_on_the_map() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/architecture.md")).unwrap();
    let mut on_map = BTreeSet::new();
    let mut folder = PathBuf::new();
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("### `") {
            folder = root.join(heading.split('`').next().unwrap());
            on_map.extend(Some(folder.join("mod.rs")).filter(|file| file.is_file()));
        } else if let Some(entry) = line.strip_prefix("- `").filter(|_| folder.is_absolute()) {
            on_map.insert(folder.join(entry.split('`').next().unwrap()));
        }
    }
    let there: BTreeSet<_> = files(&sources()).into_iter().collect();
    let missing: Vec<_> = there.difference(&on_map).collect();
    let gone: Vec<_> = on_map.difference(&there).collect();
    assert!(missing.is_empty() && gone.is_empty(), "not on the map: {missing:#?}\non it, but gone: {gone:#?}");
    for named in page.split('`').filter(|word| word.starts_with("src/")) {
        assert!(root.join(named).exists(), "the page names {named}, which is gone");
    }
}

#[test]
fn the_page_names_every_operation_of_the_store() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/architecture.md")).unwrap();
    let (_, section) = page.split_once("\n## What a store offers\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let mut named = Vec::new();
    for row in section.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let cells: Vec<_> = row.split('|').collect();
        let door = names(cells[1]).pop().unwrap_or("Records".to_owned());
        named.extend(names(cells[2]).into_iter().map(|name| (door.clone(), name)));
    }
    let store = files(&sources().join("store")).into_iter();
    let mut there: Vec<_> = store.flat_map(|file| operations_in(&fs::read_to_string(file).unwrap())).collect();
    for (door, most) in TRAITS {
        let count = there.iter().filter(|(of, _)| of == door).count();
        assert!(count <= most, "{door} has {count} operations: another database would have to offer them all");
        assert!(section.contains(&format!("`{door}` ({count}")), "the page counts otherwise: {door} has {count}");
    }
    let missing: Vec<_> = there.iter().filter(|operation| !named.contains(operation)).collect();
    let gone: Vec<_> = named.iter().filter(|operation| !there.contains(operation)).collect();
    assert!(missing.is_empty() && gone.is_empty(), "not in the table: {missing:?}; in it, but gone: {gone:?}");
    there.sort_unstable();
    named.sort_unstable();
    assert_eq!(named, there, "the table names each once");
}

#[test]
fn the_conformance_suite_uses_every_operation() {
    let suite = files(&sources().join("store/conformance")).into_iter();
    let suite: String = suite.map(|file| fs::read_to_string(file).unwrap()).collect();
    let helpers = fs::read_to_string(sources().join("store/testing.rs")).unwrap();
    let store = files(&sources().join("store")).into_iter();
    let there = store.flat_map(|file| operations_in(&fs::read_to_string(file).unwrap()));
    for (door, name) in there {
        let is_used = [&suite, &helpers].iter().any(|code| code.contains(&format!(".{name}(")));
        assert!(is_used, "no test in src/store/conformance uses {name} of {door}");
    }
}

#[test]
fn operations_are_the_functions_of_the_traits() {
    let code = "pub trait Records {\n    fn read<T>(x: T);\n\n    /// fn no\n    fn b(&self) {\n    }\n}\nimpl Other {\n    \
                fn d() {}\n}\npub trait Outbox {\n    fn list();\n}\n#[cfg(test)]\nmod tests {\npub trait Records {\n    fn e();\n}\n}\n";
    let found = [("Records", "read"), ("Records", "b"), ("Outbox", "list")];
    assert_eq!(operations_in(code), found.map(|(door, name)| (door.to_owned(), name.to_owned())));
}

#[test]
fn examples_carry_the_convention_as_it_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let template = fs::read_to_string(root.join("CLAUDE.md.template")).unwrap();
    for example in ["birthday", "release", "waits", "question-files", "patterns"] {
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

/// The functions of the [`TRAITS`].
fn operations_in(source: &str) -> Vec<(String, String)> {
    let code = without_tests(source);
    let (mut found, mut door) = (Vec::new(), None);
    for line in code.lines() {
        if let Some(name) = line.strip_prefix("pub trait ").or_else(|| line.strip_prefix("pub(crate) trait ")) {
            door = TRAITS.iter().map(|(door, _)| *door).find(|door| *door == name.trim_end_matches(" {"));
        } else if line == "}" {
            door = None;
        }
        if let (Some(door), Some(rest)) = (door, line.strip_prefix("    fn ")) {
            found.extend(rest.split(['(', '<']).next().map(|name| (door.to_owned(), name.to_owned())));
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

/// The path of a module, without `crate`.
fn module(file: &Path) -> Vec<String> {
    let inside = file.strip_prefix(sources()).unwrap().with_extension("");
    let names = inside.iter().map(|name| name.to_str().unwrap().to_owned());
    names.filter(|name| name != "mod").collect()
}

fn without_tests(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    let is_tests = |pair: &[&str]| pair[0] == "#[cfg(test)]" && pair[1].starts_with("mod ") && pair[1].ends_with('{');
    let end = lines.windows(2).position(is_tests).unwrap_or(lines.len());
    lines[..end].join("\n")
}

/// The paths that begin with `crate`, `super` or `self`, with braces taken apart. A module that offers the items of its own
/// files by their relative paths does not import them, and neither does a visibility.
fn paths_in(code: &str) -> BTreeSet<String> {
    let code: String = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut found = BTreeSet::new();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(start) {
            let before = &code[..at];
            let is_within_path =
                before.ends_with(|before: char| before.is_alphanumeric() || before == '_' || before == ':');
            if !is_within_path && !before.ends_with("pub(in ") {
                read_path("", &code[at..], &mut found);
            }
        }
    }
    found
}

/// Reads a path at the beginning of `code`, or a tree of paths, and returns what follows.
fn read_path<'a>(prefix: &str, code: &'a str, found: &mut BTreeSet<String>) -> &'a str {
    let code = code.trim_start();
    let end = code.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(code.len());
    let path = format!("{prefix}{}", &code[..end]);
    let mut rest = &code[end..];
    if !path.ends_with("::") || !rest.starts_with('{') {
        let path = path.strip_suffix("::self").unwrap_or(&path).trim_end_matches("::");
        found.insert(path.to_owned());
        return rest;
    }
    rest = &rest[1..];
    while !rest.trim_start().starts_with('}') {
        rest = read_path(&path, rest, found);
        let end = rest.find([',', '}']).expect("braces are closed");
        rest = rest[end..].strip_prefix(',').unwrap_or(&rest[end..]);
    }
    &rest.trim_start()[1..]
}

/// A path without `crate`, as it reads in `module`.
fn absolute(path: &str, module: &[String]) -> Option<Vec<String>> {
    let mut names = path.split("::").peekable();
    let mut start = match *names.peek()? {
        "crate" => Vec::new(),
        "self" | "super" => module.to_vec(),
        _ => return None,
    };
    while let Some(step) = names.next_if(|name| ["crate", "self", "super"].contains(name)) {
        if step == "super" {
            start.pop();
        }
    }
    start.extend(names.map(str::to_owned));
    Some(start)
}

/// The file that contains the item at `path`.
fn containing(path: &[String], modules: &BTreeMap<Vec<String>, PathBuf>) -> Option<Vec<String>> {
    (1..=path.len()).rev().map(|length| path[..length].to_vec()).find(|module| modules.contains_key(module))
}

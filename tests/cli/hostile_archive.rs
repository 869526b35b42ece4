//! Archives that are damaged or malicious. Nothing of them is kept.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tar::{Builder, EntryType};

use crate::archive::{export, exported, import, nothing_is_there};
use crate::forgery::{archive_of, entries, forged, forged_column, header, renamed, with_entry};
use crate::outcome::Outcome;
use crate::world::World;

const OTHER: &str = "8a6f7c1e-0000-4000-8000-000000000001";

fn is_refused(here: &World, archive: &[u8], case: &str) -> Outcome {
    let outcome = import(here, archive, &[]);
    assert_eq!((outcome.code(), outcome.stdout.as_str()), (Some(1), ""), "{case}: {outcome}");
    outcome
}

#[test]
fn a_file_that_is_something_else_is_refused() {
    let here = World::new();
    for (case, file) in [
        ("nothing", Vec::new()),
        ("a script", b"#!/bin/sh\n".to_vec()),
        ("what was never released", br#"{"archive":{"format":1,"schema":4,"program":"0.1.0","root":"x"}}"#.repeat(99)),
        ("another archive", archive_of(&vec![("a".to_owned(), b"b".to_vec())])),
        ("another manifest", archive_of(&vec![("manifest.json".to_owned(), b"{}".to_vec())])),
    ] {
        let said = is_refused(&here, &file, case).stderr;
        insta::allow_duplicates! {
            insta::assert_snapshot!(said, @r"
            error: the archive cannot be imported: it is not an archive of agent-cli export
            hint: agent-cli export ID -o FILE writes one
            ");
        }
    }
    let folder = here.run(&["import", "--trust", "."]).exits_with(1).stderr.clone();
    assert!(folder.starts_with("error: the archive cannot be read: "), "{folder}");
    nothing_is_there(&here);
}

#[test]
fn an_archive_is_looked_at_before_claude_is() {
    let (_there, _, archive) = exported();
    let here = World::new();
    let import = |archive: &[u8]| {
        let import = here.command(["import", "-", "--trust"]).with("AGENT_CLI_CLAUDE", "/none/claude");
        import.reads(archive).run().stderr
    };
    assert!(import(b"hello").contains("not an archive"));
    assert!(import(&archive).contains("/none/claude"));
    nothing_is_there(&here);
}

#[test]
fn what_was_cut_is_refused_wherever_it_was() {
    let (_there, _, archive) = exported();
    let here = World::new();
    let end = archive.len() - 1024;
    assert!(archive[end..].iter().all(|byte| *byte == 0));
    for cut in (512..end).step_by(end / 23) {
        is_refused(&here, &archive[..cut], &format!("{cut} bytes"));
    }
    // At the end of an entry, the archive looks complete.
    let checksums = archive.len() - 5 * 512;
    insta::assert_snapshot!(is_refused(&here, &archive[..checksums], "no checksums"), @"
    --- stderr
    error: the archive cannot be imported: it is cut short
    hint: export it again
    --- exit status: 1
    ");
    nothing_is_there(&here);
    import(&here, &archive[..end], &[]).succeeds();
}

#[test]
fn what_was_changed_is_refused_wherever_it_was() {
    let (_there, _, archive) = exported();
    let here = World::new();
    for at in (0..archive.len() - 1024).step_by(archive.len() / 29) {
        let is_padding = archive[at] == 0;
        let mut changed = archive.clone();
        changed[at] ^= 1;
        if !is_padding {
            is_refused(&here, &changed, &format!("byte {at}"));
        }
    }
    let said = |old: &[u8], new: &[u8]| {
        let at = archive.windows(old.len()).rposition(|part| part == old).expect("it is in there");
        let changed = [&archive[..at], new, &archive[at + old.len()..]].concat();
        is_refused(&here, &changed, "another word").stderr
    };
    assert_eq!(
        said(b"When?", b"Why??"),
        "error: the archive cannot be imported: it is damaged: the checksums are other ones\nhint: export it again\n"
    );
    nothing_is_there(&here);
}

#[test]
fn an_archive_of_a_newer_program_is_refused() {
    let (_there, _, archive) = exported();
    let here = World::new();
    for version in ["format", "schema"] {
        let newer = forged(&archive, |path, value| {
            if path == "manifest.json" {
                value[version] = 999.into();
                value["agent-cli"] = "9.0.0".into();
            }
        });
        insta::allow_duplicates! {
            insta::assert_snapshot!(is_refused(&here, &newer, version), @"
            --- stderr
            error: the archive cannot be imported: it was written by agent-cli 9.0.0, which is newer than this one
            hint: upgrade agent-cli
            --- exit status: 1
            ");
        }
    }
    nothing_is_there(&here);
}

#[test]
fn rows_that_cannot_be_are_refused() {
    let (_there, _, archive) = exported();
    let here = World::new();
    let cases: [(&str, &str, Value); 15] = [
        ("frames", "id", "../../x".into()),
        ("frames", "id", OTHER.to_uppercase().into()),
        ("frames", "root", OTHER.into()),
        ("frames", "depth", 7.into()),
        ("frames", "depth", json!([7])),
        ("frames", "status", "done".into()),
        ("frames", "state", "{}".into()),
        ("frames", "launch", "[]".into()),
        ("frames", "checkpoint", OTHER.into()),
        ("frames", "x) VALUES (1); --", 1.into()),
        ("attempts", "frame", OTHER.into()),
        ("attempts", "ended", Value::Null),
        ("requests", "attempt", OTHER.into()),
        ("events", "frame", OTHER.into()),
        ("events", "seq", 1.into()),
    ];
    for (table, column, value) in &cases {
        let hostile = forged_column(&archive, table, column, value);
        is_refused(&here, &hostile, &format!("{table}.{column} = {value}"));
    }
    let named = |old: &str, new: &str| renamed(&archive, |path| path.replace(old, new));
    for table in ["versions", "sqlite_schema", "FRAMES", "frames; DROP TABLE frames"] {
        is_refused(&here, &named("rows/events", &format!("rows/{table}")), table);
    }
    nothing_is_there(&here);
    import(&here, &forged(&archive, |_, _| ()), &[]).succeeds();
}

/// Whatever a value says: it is refused, or all commands can read the chain, and it can be removed.
#[test]
fn no_value_of_a_row_can_spoil_the_records() {
    let there = World::new();
    there.file("root.md", "ask When?\nspawn child.md\nreply {result}\n");
    there.file("child.md", "ask Where?\nreply {result}\n");
    let id = there.run(&["spawn", "root.md", "--name", "mine"]).started();
    there.answer("now");
    there.run(&["resume", &id]).succeeds();
    there.run(&["tell", &id, "be quick"]).succeeds();
    let archive = export(&there, &id);
    let here = World::new();
    let own = here.file("own.md", "ask Why?\n");
    let own = here.run(&["spawn", own.to_str().expect("UTF-8")]).started();
    let mut values = BTreeSet::new();
    for (path, content) in entries(&archive) {
        let Some(table) = path.strip_prefix("rows/").and_then(|name| name.strip_suffix(".ndjson")) else { continue };
        for row in serde_json::Deserializer::from_slice(&content).into_iter::<Value>() {
            for (column, value) in row.expect("JSON").as_object().expect("a row") {
                let others = match value {
                    Value::Number(number) if number.is_f64() => vec![json!(-1e6)],
                    Value::Number(_) => vec![json!(1_i64 << 62), json!(-1)],
                    _ => vec![json!("[{\"x\": 1}]")],
                };
                let named = |other: Value| (table.to_owned(), column.clone(), other.to_string());
                values.extend(others.into_iter().map(named));
            }
        }
    }
    assert!(values.len() > 80, "{}", values.len());
    let moves = format!("{}={}", there.project().display(), here.project().display());
    let mut accepted = 0;
    for (table, column, value) in values {
        let value: Value = serde_json::from_str(&value).expect("JSON");
        let case = format!("{table}.{column} = {value}");
        let outcome = import(&here, &forged_column(&archive, &table, &column, &value), &["--cwd", &moves]);
        let listed = here.run(&["ls", "-ap", "--json"]).json();
        let chains = if outcome.code() == Some(0) { 2 } else { 1 };
        assert_eq!(listed.as_array().map(Vec::len), Some(chains), "{case}: {outcome}");
        if chains == 2 {
            accepted += 1;
            for command in [["questions", "--all"], ["show", &id], ["logs", &id], ["rm", "--yes"]] {
                let named = (command[0] == "rm").then_some(id.as_str());
                let read = here.run(&command.into_iter().chain(named).collect::<Vec<_>>());
                assert_eq!(read.code(), Some(0), "{case}: {command:?} {read}");
            }
        }
    }
    assert_eq!(here.run(&["fsck", "--json"]).json()["findings"], json!([]));
    assert!(accepted > 10, "{accepted}");
    here.run(&["show", &own]).succeeds();
}

#[test]
fn files_that_lead_elsewhere_are_refused() {
    let (_there, id, archive) = exported();
    let here = World::new();
    let outside = here.project().join("outside");
    let frame = format!("frames/{id}");
    for name in [
        format!("{frame}/../../../../x.jsonl"),
        format!("{frame}/{OTHER}.beside/session/../../../../../x"),
        format!("{frame}/{OTHER}/tool-results/../x"),
        format!("{frame}/out.ndjson"),
        format!("{frame}/settings.json"),
        format!("frames/{OTHER}/{OTHER}.jsonl"),
        format!("/{frame}/{OTHER}.jsonl"),
        format!("./{frame}/{OTHER}.jsonl"),
        outside.display().to_string(),
        "../outside".to_owned(),
        "agent-cli.db".to_owned(),
        "SHA256SUMS".to_owned(),
        String::new(),
    ] {
        let mut entries = entries(&archive);
        entries.push((name.clone(), b"{}\n".to_vec()));
        is_refused(&here, &archive_of(&entries), &name);
    }
    let is_mine = |path: &str| path.starts_with(&frame);
    let stranger = renamed(&archive, |path| if is_mine(path) { path.replace(&id, OTHER) } else { path.to_owned() });
    is_refused(&here, &stranger, "a file of no agent");
    let mut not_utf8 = header(&format!("{frame}/{OTHER}/tool-results/x"), 0, EntryType::Regular);
    let at = not_utf8.as_bytes().iter().rposition(|byte| *byte == b'x').expect("it is there");
    not_utf8.as_mut_bytes()[at] = 0xff;
    not_utf8.set_cksum();
    is_refused(&here, &with_entry(&archive, not_utf8, b""), "no text");
    assert!(!outside.exists());
    nothing_is_there(&here);
}

#[test]
fn what_is_no_plain_file_is_refused() {
    let (_there, id, archive) = exported();
    let here = World::new();
    let place = format!("frames/{id}/{OTHER}/tool-results/x");
    for kind in *b"123456789gxAKLDMNSVX" {
        let mut entry = header(&place, 0, EntryType::new(kind));
        entry.set_link_name("/etc/passwd").expect("room");
        entry.set_cksum();
        let said = is_refused(&here, &with_entry(&archive, entry, b""), &format!("{}", kind as char)).stderr;
        assert!(said.contains("cannot be in it"), "{}: {said}", kind as char);
    }
    // Nothing but its own header gives an entry its name and size.
    let name = with_entry(&archive, header("././@LongLink", 12, EntryType::GNULongName), b"/etc/passwd\0");
    let size = with_entry(&archive, header("x", 22, EntryType::XHeader), b"22 path=/etc/passwd12\n");
    for extended in [name, size] {
        assert!(is_refused(&here, &extended, "an extended header").stderr.contains("cannot be in it"));
    }
    nothing_is_there(&here);
}

#[test]
fn no_entry_comes_twice_or_after_the_end() {
    let (_there, _, archive) = exported();
    let here = World::new();
    let all = entries(&archive);
    for twice in 0..all.len() {
        let mut entries = all.clone();
        entries.push(all[twice].clone());
        let said = is_refused(&here, &archive_of(&entries), &all[twice].0).stderr;
        assert!(said.contains("is in it twice"), "{said}");
    }
    let end = archive.len() - 1024;
    let (path, content) = &all[1];
    let mut after = Builder::new(archive[..end].to_vec());
    after.append(&header(path, content.len() as u64, EntryType::Regular), &**content).expect("room");
    is_refused(&here, &after.into_inner().expect("room"), "after the end");
    let said = is_refused(&here, &archive.repeat(2), "two archives").stderr;
    assert!(said.contains("something comes after its end"), "{said}");
    let swapped = vec![all[1].clone(), all[0].clone()];
    is_refused(&here, &archive_of(&swapped), "the manifest is not the first");
    nothing_is_there(&here);
}

/// The size in an entry's header is not trusted before its content has been read.
#[test]
fn sizes_are_bounded() {
    let (_there, id, archive) = exported();
    let here = World::new();
    let transcript = format!("frames/{id}/{OTHER}.jsonl");
    for (path, size, why) in [
        ("rows/replies.ndjson", (256 << 20) + 1, "cannot be in it"),
        ("rows/replies.ndjson", 1 << 20, "EOF while parsing"),
        (&transcript, (4 << 30) + 1, "cannot be in it"),
        (&transcript, 1 << 30, "it is cut short"),
        (&transcript, u64::MAX, "size overflow"),
        (&transcript, 1 << 62, "cannot be in it"),
    ] {
        let hostile = with_entry(&archive, header(path, size, EntryType::Regular), b"");
        let checksums = hostile.len() - 5 * 512;
        let content = if path.starts_with("rows") { b"{" } else { &[0; 1] };
        let said = is_refused(&here, &[&hostile[..checksums], content].concat(), path).stderr;
        assert!(said.contains(why), "{path} {size}: {said}");
    }
    let mut negative = header("rows/replies.ndjson", 0, EntryType::Regular);
    negative.as_ustar_mut().expect("it is one").size = *b"-00000000001";
    negative.set_cksum();
    is_refused(&here, &with_entry(&archive, negative, b""), "a negative size");
    let manifest = header("manifest.json", 1 << 20, EntryType::Regular);
    let said = is_refused(&here, manifest.as_bytes(), "a large manifest").stderr;
    assert!(said.contains("is not an archive"), "{said}");
    nothing_is_there(&here);
}

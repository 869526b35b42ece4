//! Whatever an agent does in its worktree, another machine has the same files.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;

use super::*;
use crate::runtime::worktrees::git::git as command;

const NAMES: [&str; 6] = ["one", "deep/two.x", "deep/three", "a name\nwith a break", "-four", "üñ"];

/// Each but the first two is a filter. The last one is defined in the person's settings.
const ATTRIBUTES: [&str; 6] = ["", "* -text", "* text=auto eol=crlf", "*.x ident", "* text", "*.x filter=upper"];

const CONTENTS: [&[u8]; 6] = [b"", b"a\n", b"a\r\nb\n", b"a\r\nb\r\n", b"$Id$ and\n", b"\0\xff\r\n"];

#[derive(Clone, Debug)]
enum Step {
    Write(usize, &'static [u8]),
    Remove(usize),
    Link(usize),
    Executable(usize),
    Attributes(usize),
    Ignore(usize),
    Git(&'static [&'static str]),
    GitOf(&'static [&'static str], usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = 0..NAMES.len();
    let git: [&[&str]; 6] = [
        &["add", "--all"],
        &["commit", "-q", "--allow-empty", "-a", "-m", "some"],
        &["checkout", "-q", "--detach"],
        &["reset", "-q", "--hard"],
        &["reset", "-q", "--soft", "HEAD~1"],
        &["stash"],
    ];
    let git_of: [&[&str]; 5] = [
        &["add", "-f"],
        &["rm", "-q", "--cached"],
        &["update-index", "--assume-unchanged"],
        &["update-index", "--skip-worktree"],
        &["add", "--intent-to-add"],
    ];
    let step = prop_oneof![
        6 => (name.clone(), 0..CONTENTS.len()).prop_map(|(name, content)| Step::Write(name, CONTENTS[content])),
        2 => name.clone().prop_map(Step::Remove),
        1 => name.clone().prop_map(Step::Link),
        1 => name.clone().prop_map(Step::Executable),
        1 => (0..ATTRIBUTES.len()).prop_map(Step::Attributes),
        1 => name.clone().prop_map(Step::Ignore),
        4 => proptest::sample::select(git.to_vec()).prop_map(Step::Git),
        4 => (proptest::sample::select(git_of.to_vec()), name).prop_map(|(git, name)| Step::GitOf(git, name)),
    ];
    proptest::collection::vec(step, 1..16)
}

impl Machine {
    fn take(&self, step: &Step) {
        let top = &self.worktree.path;
        let at = |number: usize| top.join(NAMES[number]);
        let make_room = |number: usize| {
            let _ = fs::remove_file(at(number));
            let _ = fs::create_dir_all(at(number).parent().unwrap());
        };
        // Some steps fail, as those of agents do.
        match step {
            Step::Write(name, content) => {
                make_room(*name);
                fs::write(at(*name), content).unwrap();
            }
            Step::Remove(name) => drop(fs::remove_file(at(*name))),
            Step::Link(name) => {
                make_room(*name);
                symlink("one", at(*name)).unwrap();
            }
            Step::Executable(name) => drop(fs::set_permissions(at(*name), fs::Permissions::from_mode(0o755))),
            Step::Attributes(number) => fs::write(top.join(".gitattributes"), ATTRIBUTES[*number]).unwrap(),
            Step::Ignore(number) => fs::write(top.join(".gitignore"), NAMES[*number]).unwrap(),
            Step::Git(words) => self.run(words),
            Step::GitOf(words, name) => self.run(&[words, &["--", NAMES[*name]][..]].concat()),
        }
    }

    fn run(&self, words: &[&str]) {
        let who = ["-c", "user.name=somebody", "-c", "user.email=somebody@example.com"];
        command().arg("-C").arg(&self.worktree.path).args(who).args(words).output().unwrap();
    }

    pub(super) fn list(&self, words: &[&str]) -> BTreeSet<String> {
        let listed = command().arg("-C").arg(&self.worktree.path).args(words).output().unwrap().stdout;
        String::from_utf8(listed).unwrap().split_terminator('\0').map(str::to_owned).collect()
    }

    /// The names of what git tracks or does not ignore.
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.list(&["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
    }

    /// The target of a link, or the content of a file, and whether it is executable.
    pub(super) fn file(&self, name: &str) -> Option<(Vec<u8>, bool)> {
        let path = self.worktree.path.join(name);
        let found = path.symlink_metadata().ok()?;
        let content = if found.is_symlink() {
            fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
        } else {
            fs::read(&path).unwrap()
        };
        Some((content, found.permissions().mode() & 0o100 != 0))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, ..ProptestConfig::default() })]

    #[test]
    fn another_machine_has_the_same_files(before in steps(), after in steps(), more in steps()) {
        let machine = Machine::new();
        let mut pushed = Pushed::default();
        for (number, steps) in [(1, before), (2, after)] {
            steps.iter().for_each(|step| machine.take(step));
            pushed = machine.push(pushed, number);
            prop_assert_eq!(&pushed.failure, &None);
        }
        let head = machine.git("rev-parse HEAD");
        let files: BTreeMap<_, _> = machine.names().into_iter().map(|name| (name.clone(), machine.file(&name))).collect();
        // Git keeps the content of a skip-worktree file as it was when the file was marked.
        let marked = machine.list(&["ls-files", "-z", "-v"]);
        let is_skipped = |name: &String| marked.contains(&format!("S {name}"));
        machine.replace();
        machine.fetch(&pushed).unwrap();
        prop_assert_eq!(machine.git("rev-parse HEAD"), head);
        let compare = || {
            for name in machine.names().iter().chain(files.keys()).filter(|name| !is_skipped(name)) {
                prop_assert_eq!(&machine.file(name), files.get(name).unwrap_or(&None), "{}", name);
            }
            Ok(())
        };
        compare()?;
        // It can be pushed again from there, and unpacked where other files are.
        let again = machine.push(pushed, 3);
        prop_assert!(again.is_current(), "{:?}", again);
        // Files that git ignores stay where they are.
        more.iter().filter(|step| !matches!(step, Step::Ignore(_))).for_each(|step| machine.take(step));
        machine.fetch(&again).unwrap();
        compare()?;
    }
}

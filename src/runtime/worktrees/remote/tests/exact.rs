//! Settings and states of git under which it would lose or change files.

use super::*;

type Step = fn(&Machine);

/// The machine is lost after `before`, and another one, in whose clone `there` was done, has the same files.
fn arrives(name: &str, before: Step, there: Step) -> Machine {
    let machine = Machine::new();
    before(&machine);
    let pushed = machine.push(Pushed::default(), 1);
    assert_eq!(pushed.failure, None, "{name}");
    let files: Vec<_> = machine.names().into_iter().map(|name| (machine.file(&name), name)).collect();
    machine.replace();
    there(&machine);
    machine.fetch(&pushed).unwrap();
    for (file, path) in files {
        assert_eq!(machine.file(&path), file, "{name}: {path}");
    }
    machine
}

fn configure(machine: &Machine, setting: &str) {
    git(&machine.top, &format!("config {setting}"));
}

#[test]
fn no_setting_of_a_repository_hides_or_changes_a_file() {
    let leave_all: Step = |machine| {
        leave(machine);
        machine.write("ONE", "other");
        machine.write("deep/x.dat", "a\r\nb\n");
        fs::set_permissions(machine.worktree.path.join("one"), fs::Permissions::from_mode(0o755)).unwrap();
    };
    let settings: [(&str, Step); 6] = [
        ("case", |machine| configure(machine, "core.ignoreCase true")),
        ("modes", |machine| configure(machine, "core.fileMode false")),
        ("links", |machine| configure(machine, "core.symlinks false")),
        ("line ends", |machine| configure(machine, "core.autocrlf true")),
        ("a sparse checkout", |machine| {
            git(&machine.top, "sparse-checkout set --cone nothing");
        }),
        ("attributes", |machine| {
            fs::create_dir_all(machine.worktree.repository.join("info")).unwrap();
            fs::write(machine.worktree.repository.join("info/attributes"), "*.dat text eol=lf\n").unwrap();
        }),
    ];
    for (name, set) in settings {
        arrives(name, leave_all, set);
    }
    for (name, set) in settings {
        let machine = Machine::new();
        set(&machine);
        leave_all(&machine);
        let pushed = machine.push(Pushed::default(), 1);
        assert_eq!(pushed.failure, None, "{name}");
        let files: Vec<_> = machine.names().into_iter().map(|path| (machine.file(&path), path)).collect();
        machine.replace();
        machine.fetch(&pushed).unwrap();
        files.into_iter().for_each(|(file, path)| assert_eq!(machine.file(&path), file, "{name}: {path}"));
    }
}

#[test]
fn what_git_ignores_later_arrives_again() {
    let forced: Step = |machine| {
        machine.write(".gitignore", "*.ignored\n");
        machine.write("a.ignored", "1");
        machine.git("add -f a.ignored");
    };
    let machine = arrives("added by force", forced, |_| ());
    let pushed = machine.push(Pushed::default(), 2);
    machine.replace_again();
    machine.fetch(&pushed).unwrap();
    assert_eq!(machine.read("a.ignored").as_deref(), Some("1"));
}

/// Another worktree is in the place of the agent's.
#[test]
fn the_worktree_of_somebody_else_is_left_alone() {
    let by_link: fn(&Path, &Path) = |place, other| symlink(other, place).unwrap();
    let by_file: fn(&Path, &Path) = |place, other| {
        fs::create_dir(place).unwrap();
        fs::copy(other.join(".git"), place.join(".git")).unwrap();
    };
    for put in [by_link, by_file] {
        let machine = Machine::new();
        machine.write("new", "1");
        let pushed = machine.push(Pushed::default(), 1);
        let other = machine.top.with_file_name("other");
        git(&machine.top, &format!("worktree add -q -b person {}", other.display()));
        fs::write(other.join("precious"), "mine").unwrap();
        fs::rename(&machine.worktree.path, machine.top.with_file_name("moved")).unwrap();
        put(&machine.worktree.path, &other);
        assert!(machine.push(Pushed::default(), 2).failure.is_some(), "its files are not the agent's");
        machine.fetch(&pushed).unwrap();
        assert_eq!((machine.read("new").as_deref(), machine.read("precious")), (Some("1"), None));
        assert_eq!(fs::read_to_string(other.join("precious")).unwrap(), "mine");
        assert_eq!(git(&other, "symbolic-ref --short HEAD"), "person");
    }
}

#[test]
fn what_is_in_the_way_is_kept() {
    let machine = Machine::new();
    machine.write("build", "a file");
    let pushed = machine.push(Pushed::default(), 1);
    fs::remove_file(machine.worktree.path.join("build")).unwrap();
    fs::write(machine.worktree.repository.join("info/exclude"), "build\n").unwrap();
    machine.write("build/x", "ignored");
    machine.fetch(&pushed).unwrap();
    assert_eq!(machine.read("build").as_deref(), Some("a file"));
    let kept = git(&machine.top, "for-each-ref --format=%(refname) refs/agent-cli/kept");
    let has = |name: &str| git(&machine.top, &format!("ls-tree -r --name-only {name}")).contains("build/x");
    assert!(kept.lines().any(has), "{kept}");
    // A worktree that cannot be read as one is moved away, and its commits are kept.
    machine.git("checkout -q --detach");
    commit(&machine.worktree.path, "detached");
    let detached = machine.git("rev-parse HEAD");
    machine.write("other", "1");
    fs::write(PathBuf::from(machine.git("rev-parse --git-path index")), "damaged").unwrap();
    machine.fetch(&pushed).unwrap();
    assert_eq!((machine.read("build").as_deref(), machine.read("other")), (Some("a file"), None));
    let aside = machine.worktree.path.with_extension("kept-1");
    assert_eq!(fs::read_to_string(aside.join("other")).unwrap(), "1");
    git(&machine.top, &format!("rev-parse --verify refs/agent-cli/kept/{detached}"));
    assert!(!aside.join(".git").exists(), "no git works there on the new worktree");
}

#[test]
fn a_nested_repository_is_pushed_by_itself_or_holds_up_the_push() {
    let machine = Machine::new();
    let nested = machine.worktree.path.join("nested");
    git(&machine.worktree.path, "init -q nested");
    commit(&nested, "file");
    machine.git("add nested");
    machine.git("commit -q -m nested");
    let pushed = machine.push(Pushed::default(), 1);
    assert!(pushed.failure.unwrap().contains("nested"), "a commit names it, and nobody else has it");
    fs::remove_dir_all(&nested).unwrap();
    assert_eq!(machine.push(Pushed::default(), 2).failure, None);
}

/// A link on the way to a file leads out of the worktree.
#[test]
fn nothing_behind_a_link_is_read_or_written() {
    let machine = Machine::new();
    let outside = machine.top.with_file_name("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("key"), "secret").unwrap();
    machine.write("d/key", "mine");
    machine.git("add d/key");
    machine.git("update-index --skip-worktree d/key");
    fs::remove_dir_all(machine.worktree.path.join("d")).unwrap();
    symlink(&outside, machine.worktree.path.join("d")).unwrap();
    assert!(!snapshot::is_file_in(&machine.worktree.path, Path::new("d/key")));
    let pushed = machine.push(Pushed::default(), 1);
    let commit = pushed.snapshot.expect("it is pushed").commit;
    let names = git(&machine.top, &format!("ls-tree -r --name-only {commit}"));
    for name in names.lines() {
        assert!(!git(&machine.top, &format!("show {commit}:{name}")).contains("secret"), "{name}");
    }
}

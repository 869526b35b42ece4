//! Agents that put something else in the place of files and settings.

use super::*;

/// A file in the worktree says where its repository is.
#[test]
fn only_the_files_of_the_worktree_itself_are_pushed() {
    let machine = Machine::new();
    let (secret, fake) = (machine.temp.path().join("secret"), machine.worktree.path.join("fake"));
    fs::create_dir(&secret).unwrap();
    fs::write(secret.join("key"), "secret").unwrap();
    let real = machine.git("rev-parse --absolute-git-dir");
    let leave = |config: &str, commondir: &str| {
        let _ = fs::remove_dir_all(&fake);
        fs::create_dir_all(fake.join("refs")).unwrap();
        fs::copy(Path::new(&real).join("HEAD"), fake.join("HEAD")).unwrap();
        fs::write(fake.join("config"), config).unwrap();
        if !commondir.is_empty() {
            fs::write(fake.join("commondir"), commondir).unwrap();
        }
        fs::write(machine.worktree.path.join(".git"), format!("gitdir: {}\n", fake.display())).unwrap();
    };
    let elsewhere = format!("[core]\nrepositoryformatversion = 0\nworktree = {}\n", secret.display());
    for (config, commondir) in
        [(&*elsewhere, ""), ("", machine.worktree.repository.to_str().unwrap()), (&*elsewhere, "..")]
    {
        leave(config, commondir);
        let pushed = machine.push(Pushed::default(), 1);
        assert!(pushed.failure.unwrap().contains("no longer a worktree"), "{config} {commondir}");
        assert_eq!((pushed.snapshot, machine.references()), (None, vec!["refs/heads/main".to_owned()]));
    }
}

#[test]
fn nothing_in_a_repository_leads_a_push_elsewhere() {
    let other = |machine: &Machine| {
        let other = machine.temp.path().join("other.git");
        git(&machine.top, &format!("init -q --bare {}", other.display()));
        other.display().to_string()
    };
    let machine = Machine::new();
    machine.write("new", "1");
    git(&machine.top, &format!("remote set-url origin {}", other(&machine)));
    let pushed = machine.push(Pushed::default(), 1);
    assert!(pushed.is_current() && machine.references().len() == 3, "{pushed:?}");
    let settings = [
        (format!("url.{}.insteadOf", other(&machine)), machine.remote.url.clone()),
        (format!("remote.{}.url", machine.remote.url), other(&machine)),
        ("core.sshCommand".to_owned(), "false".to_owned()),
        ("http.proxy".to_owned(), "http://127.0.0.1:1".to_owned()),
    ];
    let mut last = pushed;
    for (number, (name, value)) in (2..).zip(settings) {
        git(&machine.top, &format!("config {name} {value}"));
        machine.write("new", &name);
        last = machine.push(last, number);
        assert!(last.is_current() && machine.references().contains(&format!("refs/agent-cli/f/{number}")), "{last:?}");
    }
    // Without a slash, git looks for a file of this name.
    let url = "localhost:other.git";
    fs::create_dir_all(machine.worktree.repository.join("remotes")).unwrap();
    fs::write(machine.worktree.repository.join("remotes").join(url), format!("URL: {}\n", other(&machine))).unwrap();
    let remote = Remote { url: url.into(), ..machine.remote.clone() };
    machine.write("new", url);
    let refused = push(&machine.worktree, &remote, last, "refs/agent-cli/f/9".into(), pending::<()>);
    assert!(
        !refused.is_current() && git(&machine.top, &format!("ls-remote {}", other(&machine))).is_empty(),
        "{refused:?}"
    );
}

#[test]
fn a_pipe_in_the_place_of_a_file_holds_up_nothing() {
    for number in 0..4 {
        let machine = Machine::new();
        machine.write("deep/file", "1");
        let Worktree { path, repository, .. } = &machine.worktree;
        let index = machine.git("rev-parse --git-path index").into();
        let place =
            [path.join("deep/.gitignore"), path.join(".git"), index, repository.join("shallow")][number].clone();
        let _ = fs::remove_file(&place);
        assert!(std::process::Command::new("mkfifo").arg(&place).status().unwrap().success());
        let soon = || async { tokio::time::sleep(Duration::from_millis(300)).await };
        let pushed = push(&machine.worktree, &machine.remote, Pushed::default(), "refs/agent-cli/f/1".into(), soon);
        assert!(!pushed.is_current(), "{}: {pushed:?}", place.display());
    }
}

#[test]
fn a_branch_that_names_another_does_not_change_it() {
    let machine = Machine::new();
    commit(&machine.worktree.path, "mine");
    let pushed = machine.push(Pushed::default(), 1);
    let main = git(&machine.top, "rev-parse main");
    machine.git("checkout -q --detach");
    git(&machine.top, "symbolic-ref refs/heads/agent-cli/agent-1 refs/heads/main");
    let directory = machine.git("rev-parse --absolute-git-dir");
    fs::write(Path::new(&directory).join("index.lock"), "").unwrap();
    machine.fetch(&pushed).unwrap();
    assert_eq!((git(&machine.top, "rev-parse main"), machine.read("mine").is_some()), (main, true));
}

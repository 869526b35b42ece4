use super::program_settings::overriding;
use super::*;

#[test]
fn nothing_of_the_environment_is_used_but_the_place_of_the_users_settings() {
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_CONFIG_KEY_0", "GIT_SSH_COMMAND", "GIT_EXEC_PATH"] {
        assert!(is_dropped(OsStr::new(name)), "{name}");
    }
    for name in ["GIT_CONFIG_GLOBAL", "PATH", "GITHUB_TOKEN"] {
        assert!(!is_dropped(OsStr::new(name)), "{name}");
    }
}

#[test]
fn what_git_says_against_it_is_passed_on() {
    let temp = tempfile::tempdir().unwrap();
    let error = Git::plain(temp.path(), ["rev-parse", "HEAD"]).text().unwrap_err().to_string();
    assert!(error.starts_with("git rev-parse failed: fatal: not a git repository"), "{error}");
}

#[test]
fn programs_of_a_repository_give_way_to_the_persons() {
    let list = "global\0filter.lfs.smudge\ngit-lfs smudge -- %f\0local\0filter.lfs.smudge\nevil\0local\0filter.a=b.clean\nevil\0\
        worktree\0core.fsmonitor\nevil\0global\0credential.helper\nstore\0local\0credential.helper\nevil\0\
        local\0core.bare\nfalse\0local\0filter.x.required\0local\0hook.y.command\nevil\0global\0core.hookspath\nhooks\0";
    let expected = [
        ("core.fsmonitor", ""),
        ("core.hookspath", "/dev/null"),
        ("credential.helper", ""),
        ("credential.helper", "store"),
        ("filter.a=b.clean", ""),
        ("filter.lfs.smudge", "git-lfs smudge -- %f"),
        ("filter.x.required", "false"),
        ("hook.y.command", ""),
        ("hook.y.enabled", "false"),
    ];
    assert_eq!(overriding(list), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let own = overriding("global\0core.hookspath\n/home/me/hooks\0local\0core.hookspath\n/repo/hooks\0");
    assert_eq!(own, [("core.hookspath".to_owned(), "/home/me/hooks".to_owned())]);
}

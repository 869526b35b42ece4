//! A project that is a git repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::world::World;

/// A world whose project is a repository with these files committed.
pub(crate) fn repository(files: &[(&str, &str)]) -> World {
    repository_in(World::new(), files)
}

/// The same in this world.
pub(crate) fn repository_in(world: World, files: &[(&str, &str)]) -> World {
    let who = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"];
    let world = who.into_iter().fold(world, |world, name| world.with(name, "somebody"));
    files.iter().for_each(|(name, text)| drop(world.file(name, text)));
    git(&world.project(), "init -q -b main");
    commit(&world);
    world
}

pub(crate) fn commit(world: &World) {
    git(&world.project(), "add .");
    git(&world.project(), "-c user.name=somebody -c user.email=somebody commit -q -m files");
}

/// The output of a git command.
#[track_caller]
pub(crate) fn git(folder: &Path, arguments: &str) -> String {
    let output = Command::new("git").arg("-C").arg(folder).args(arguments.split(' ')).output().expect("git is there");
    assert!(output.status.success(), "git {arguments}: {output:?}");
    String::from_utf8(output.stdout).expect("text").trim().to_owned()
}

/// The branches that were made for agents, sorted.
pub(crate) fn branches(world: &World) -> Vec<String> {
    let listed = git(&world.project(), "for-each-ref --format=%(refname:short) refs/heads/agent-cli");
    listed.lines().map(str::to_owned).collect()
}

/// The worktrees that were made for agents, sorted.
pub(crate) fn worktrees(world: &World) -> Vec<PathBuf> {
    let found = fs::read_dir(world.state().join("worktrees")).into_iter().flatten();
    let mut found: Vec<_> = found.map(|entry| entry.expect("readable").path()).collect();
    found.sort();
    found
}

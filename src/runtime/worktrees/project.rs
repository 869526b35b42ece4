//! Which project a directory belongs to.

use std::fs;
use std::path::{Path, PathBuf};

/// The project of a directory: the top of its git repository, of which all worktrees are part; elsewhere the directory.
/// Nothing but file names and `.git` files decides, so the directory itself may be gone.
pub(crate) fn project_of(dir: &Path) -> PathBuf {
    let Some(top) = dir.ancestors().find(|above| above.join(".git").exists()) else { return dir.to_owned() };
    // A worktree has a file that names a directory in that of its repository.
    let file = fs::read_to_string(top.join(".git")).unwrap_or_default();
    let of_worktree = file.trim().strip_prefix("gitdir: ").map(Path::new).and_then(|gitdir| {
        let worktrees = gitdir.parent().filter(|worktrees| worktrees.ends_with(".git/worktrees"))?;
        Some(worktrees.parent()?.parent()?.to_owned())
    });
    of_worktree.unwrap_or_else(|| top.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_a_repository_with_its_worktrees_or_a_directory() {
        let temp = tempfile::tempdir().unwrap();
        let at = |path: &str| temp.path().join(path);
        fs::create_dir_all(at("repository/.git/worktrees/w")).unwrap();
        fs::create_dir_all(at("repository/src")).unwrap();
        fs::create_dir_all(at("w/sub")).unwrap();
        fs::write(at("w/.git"), format!("gitdir: {}\n", at("repository/.git/worktrees/w").display())).unwrap();
        for dir in ["repository", "repository/src", "repository/gone/deep", "w/sub"] {
            assert_eq!(project_of(&at(dir)), at("repository"), "{dir}");
        }
        assert_eq!(project_of(&at("plain")), at("plain"));
        // A submodule is a project of its own.
        fs::create_dir_all(at("repository/module")).unwrap();
        fs::write(at("repository/module/.git"), "gitdir: ../.git/modules/module\n").unwrap();
        assert_eq!(project_of(&at("repository/module")), at("repository/module"));
    }
}

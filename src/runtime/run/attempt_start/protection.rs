//! Rules that keep an agent's file tools from what decides about agents, even where the agent works: the state directory, the
//! user's config file, and the programs that run next.

use std::path::{Path, PathBuf};

use crate::claude::settings::permission_rules::{no_edit, no_read};
use crate::core::agent::launch::Launch;
use crate::store::{Store, token_files};

/// A path, and a pattern for what else begins like it.
type Place = (PathBuf, &'static str);

/// The rules for an agent that may edit files in `dirs`. `programs`: those that run as the person whenever an agent starts, or calls
/// a tool.
pub(super) fn rules(store: &Store, config: Option<&Path>, programs: [&Path; 2], dirs: &[PathBuf]) -> Vec<String> {
    let programs = programs.into_iter().map(|program| (program.to_owned(), ""));
    let edits = state(store, dirs).into_iter().chain(config_places(config, dirs)).chain(programs);
    let tokens = || token_files(store.dir()).into_iter().map(|file| (file, ""));
    // They contain passwords, and the folder of the page may contain a page that leads a browser to its login link.
    let secrets = config.into_iter().map(|config| (config.to_owned(), ""));
    let secrets = secrets.chain([(store.dir().server_file(), "*"), (store.dir().page(), "")]);
    let edits = edits.chain(tokens()).flat_map(by_all_names).filter_map(|(path, pattern)| no_edit(&path, pattern));
    let reads = secrets.chain(tokens()).flat_map(by_all_names).filter_map(|(path, pattern)| no_read(&path, pattern));
    edits.chain(reads).collect()
}

/// The directories in which an agent that may edit files needs no permission for that. `cwd`: where it works, unless that is a new
/// worktree.
pub(crate) fn reached(launch: &Launch, cwd: Option<&Path>) -> Vec<PathBuf> {
    let added = launch.args.pairs().filter(|(name, _)| *name == "--add-dir").filter_map(|(_, value)| value);
    let added = added.filter_map(|dir| cwd.unwrap_or(Path::new("/")).join(dir).canonicalize().ok());
    cwd.map(Path::to_owned).into_iter().chain(added).collect()
}

/// A rule for a directory also concerns everything below it, and keeps it from being moved away, changed and moved back. So the
/// whole state directory has one where the agent could do that, unless it works in it. Elsewhere the worktrees of agents remain
/// usable.
fn state(store: &Store, dirs: &[PathBuf]) -> Vec<Place> {
    let whole = store.dir().path();
    let is_reached = dirs.iter().any(|dir| whole.starts_with(dir));
    let is_worked_in = dirs.iter().any(|dir| dir != whole && dir.starts_with(whole));
    if is_reached && !is_worked_in { vec![(whole.to_owned(), "")] } else { store.dir().records() }
}

/// The config file, and its folder if that is agent-cli's own.
fn config_places(config: Option<&Path>, dirs: &[PathBuf]) -> Vec<Place> {
    const OWN_FOLDER: &str = "agent-cli";
    let folder = config.and_then(Path::parent).filter(|folder| folder.ends_with(OWN_FOLDER));
    let is_worked_in = |folder: &Path| {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        dirs.iter().any(|dir| dir.starts_with(&real) || dir.starts_with(folder))
    };
    let folder = folder.filter(|folder| !is_worked_in(folder));
    folder.into_iter().chain(config).map(|path| (path.to_owned(), "")).collect()
}

/// The place as it is named and, if that differs, with links resolved. The file itself may not exist yet.
fn by_all_names((path, pattern): Place) -> impl Iterator<Item = Place> {
    let of_parent = || Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    let real = path.canonicalize().ok().or_else(of_parent).filter(|real| *real != path);
    [Some(path), real].into_iter().flatten().map(move |path| (path, pattern))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::claude::options;
    use crate::store::testing;

    const PROGRAMS: [&str; 2] = ["/usr/bin/agent-cli", "/usr/bin/claude"];

    fn found(store: &Store, config: Option<&Path>, dirs: &[&Path]) -> Vec<String> {
        let dirs: Vec<PathBuf> = dirs.iter().map(|dir| (*dir).to_owned()).collect();
        rules(store, config, PROGRAMS.map(Path::new), &dirs)
    }

    #[test]
    fn an_agent_may_not_edit_the_records_and_the_config_file_wherever_links_lead() {
        let (temp, store) = testing::store();
        let real = temp.path().canonicalize().unwrap();
        fs::create_dir(real.join("dotfiles")).unwrap();
        symlink(real.join("dotfiles"), real.join("link")).unwrap();
        let config = real.join("link/config.toml");
        let rules = found(&store, Some(&config), &[]);
        for path in [config, real.join("dotfiles/config.toml"), store.dir().database().canonicalize().unwrap()] {
            let rule = format!("Edit(/{}", path.display());
            assert!(rules.iter().any(|known| known.starts_with(&rule)), "{rule} in {rules:?}");
        }
        let mut each = rules.clone();
        each.dedup();
        assert_eq!(each, rules, "no rule is written twice");
    }

    #[test]
    fn programs_are_not_edited_and_secrets_are_not_read() {
        let (temp, store) = testing::store();
        let real = temp.path().canonicalize().unwrap();
        let [program, link, config] = ["program", "link", "config.toml"].map(|name| real.join(name));
        fs::write(&program, "").unwrap();
        symlink(&program, &link).unwrap();
        let rules = rules(&store, Some(&config), [Path::new(PROGRAMS[0]), &link], &[]);
        let server = store.dir().server_file();
        for rule in [
            format!("Edit(/{})", PROGRAMS[0]),
            format!("Edit(/{})", program.display()),
            format!("Edit(/{})", link.display()),
            format!("Read(/{})", config.display()),
            format!("Read(/{}*)", server.display()),
        ] {
            assert!(rules.contains(&rule), "{rule} in {rules:?}");
        }
    }

    #[test]
    fn folders_are_protected_as_a_whole_where_an_agent_could_move_them_but_does_not_work() {
        let (_temp, store) = testing::store();
        let state = store.dir().path().to_owned();
        let above = state.parent().unwrap();
        let has = |dirs: &[&Path], config: &Path| {
            let rules = found(&store, Some(config), dirs);
            let of = |path: &Path| rules.contains(&format!("Edit(/{})", path.display()));
            [of(&state), of(&state.join("frames")), of(config.parent().unwrap())]
        };
        let (own, other) = (above.join(".config/agent-cli/config.toml"), above.join("dotfiles/config.toml"));
        assert_eq!(has(&[above], &own), [true, false, true]);
        assert_eq!(has(&[above], &other), [true, false, false], "it may contain anything");
        assert_eq!(has(&[Path::new("/elsewhere")], &own), [false, true, true]);
        let worktree = state.join("worktrees/x");
        assert_eq!(has(&[&worktree], &own), [false, true, true]);
        assert_eq!(has(&[above, &worktree], &own), [false, true, true]);
        assert_eq!(has(&[own.parent().unwrap()], &own), [false, true, false]);
    }

    #[test]
    fn an_agent_reaches_its_directory_and_those_that_were_added() {
        let temp = tempfile::tempdir().unwrap();
        let real = temp.path().canonicalize().unwrap();
        fs::create_dir(real.join("sub")).unwrap();
        let args = options::parse(&["--add-dir=sub".to_owned(), "--add-dir=missing".to_owned()]).unwrap();
        let launch = Launch { args, ..Launch::default() };
        assert_eq!(reached(&launch, Some(&real)), [real.clone(), real.join("sub")]);
    }
}

//! Exports a chain to a file that another machine can import.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::app::App;
use crate::app::asker::PersonsTask;
use crate::app::error::{AppError, Refusal};
use crate::app::lookup::frame_named;
use crate::core::housekeeping::inventory;
use crate::core::id::FrameId;
use crate::store::Store;

/// A chain that can be exported.
#[derive(Debug)]
pub(crate) struct ExportableChain<'a> {
    store: &'a Store,
    pub(crate) chain: FrameId,
    /// The names of its agents' arguments that may hold a secret.
    pub(crate) secrets: Vec<String>,
}

/// Prepares to export the chain of the agent that an id names.
pub(crate) fn export<'a>(app: &App<'a>, id: &str) -> Result<ExportableChain<'a>, AppError> {
    app.asker.may(PersonsTask::Export)?;
    let chain = app.store.chain_of(frame_named(app, id)?)?.root;
    app.store.frame_here(chain)?;
    let mut secrets = Vec::new();
    for node in app.store.tree(chain)?.all() {
        let Some(frame) = app.store.frame(node.id)? else { continue };
        secrets.extend(inventory::may_be_secret(&frame.launch.args).into_iter().map(str::to_owned));
    }
    secrets.sort();
    secrets.dedup();
    Ok(ExportableChain { store: app.store, chain, secrets })
}

impl ExportableChain<'_> {
    pub(crate) fn write(&self, to: &mut dyn Write) -> Result<(), AppError> {
        self.store.housekeeping().export(self.chain, to)?;
        Ok(to.flush().map_err(|error| Refusal::failure(format!("failed to write the archive: {error}")))?)
    }

    /// Writes the archive to a file, or to the one that a link leads to. An existing file is replaced only after everything is
    /// written. The new file stays private, like the temporary file. A pipe or a device is written to.
    pub(crate) fn write_file(&self, path: &Path) -> Result<(), AppError> {
        let broken = |error: io::Error| Refusal::failure(format!("cannot write {}: {error}", path.display()));
        let real = path.canonicalize();
        let path = real.as_deref().unwrap_or(path);
        if path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir()) {
            return self.write(&mut BufWriter::new(File::options().write(true).open(path).map_err(broken)?));
        }
        let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
        let file = tempfile::Builder::new().prefix(".agent-cli-export-").tempfile_in(folder).map_err(broken)?;
        let mut file = BufWriter::new(file);
        self.store.housekeeping().export(self.chain, &mut file)?;
        let file = file.into_inner().map_err(|error| broken(error.into_error()))?;
        file.as_file().sync_all().map_err(broken)?;
        file.persist(path).map_err(|error| broken(error.error))?;
        Ok(File::open(folder).and_then(|folder| folder.sync_all()).map_err(broken)?)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::app::testing;
    use crate::core::agent::launch::Launch;
    use crate::store::NewFrame;
    use crate::store::testing::{new, store};

    #[test]
    fn a_chain_is_exported_whole_and_its_secrets_are_named_once() {
        let (_temp, store) = store();
        let args = ["--api-key=x", "--model=y", "--api-key=z"].map(str::to_owned).to_vec();
        let launch = Launch { args: args.into(), ..Launch::default() };
        let root = store.create_root(&NewFrame { launch, ..new("a task") }).unwrap();
        let (_, child) = store.request_child(store.start(root), None, &new("child"), "child").unwrap();
        let exported = export(&testing::app(&store), &child.to_string()).unwrap();
        assert_eq!((exported.chain, exported.secrets.as_slice()), (root, ["--api-key".to_owned()].as_slice()));
    }

    #[test]
    fn a_file_is_replaced_only_by_a_whole_archive() {
        let (temp, store) = store();
        let (running, ready) = (store.start(store.root()).frame, store.root());
        let app = testing::app(&store);
        let file = temp.path().join("chain.tar");
        fs::write(&file, "before").unwrap();
        let write = |id: FrameId, path: &Path| export(&app, &id.to_string()).unwrap().write_file(path);
        write(running, &file).unwrap_err();
        assert_eq!(fs::read_to_string(&file).unwrap(), "before");
        write(ready, &file).unwrap();
        let mut written = Vec::new();
        export(&app, &ready.to_string()).unwrap().write(&mut written).unwrap();
        assert_eq!(fs::read(&file).unwrap(), written);
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 2, "nothing else is left");
        let link = temp.path().join("link.tar");
        std::os::unix::fs::symlink("chain.tar", &link).unwrap();
        fs::write(&file, "before").unwrap();
        write(ready, &link).unwrap();
        assert_eq!((fs::read(&file).unwrap(), link.is_symlink()), (written.clone(), true));
        let pipe = temp.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        write(ready, &pipe).unwrap();
        assert_eq!(reader.join().unwrap(), written);
        let nowhere = write(ready, &temp.path().join("no/chain.tar")).unwrap_err().to_string();
        assert!(nowhere.starts_with("cannot write "), "{nowhere}");
    }

    #[test]
    fn agents_are_refused() {
        let (_temp, store) = store();
        let caller = store.start(store.root());
        let refused = export(&testing::app_of(&store, caller), &caller.frame.to_string()).unwrap_err();
        assert_eq!(refused.to_string(), "agents cannot export chains");
    }
}

//! Imports an exported chain, if it is trusted. A chain brings its own instructions, permissions and commands.

use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::app::App;
use crate::app::asker::PersonsTask;
use crate::app::error::{AppError, Refusal};
use crate::claude::installation::program;
use crate::core::agent::launch::Launch;
use crate::core::events::log_entry::LogEntry;
use crate::core::housekeeping::inventory::Inventory;
use crate::core::housekeeping::relocation::{Move, Relocation};
use crate::core::id::FrameId;
use crate::runtime::RuntimeError;
use crate::runtime::recovery::foreign_session;
use crate::store::{Adapted, Here, Unpacked};

/// An archive that was read completely. Later changes of its file have no effect.
pub(crate) struct Archive {
    name: String,
    unpacked: Unpacked,
    digest: String,
}

/// A chain, with the `claude` and environment in which it would run here.
pub(crate) struct Importable {
    name: String,
    adapted: Adapted,
    pub(crate) digest: String,
}

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) chain: FrameId,
    /// Whether another chain here has its name.
    pub(crate) has_lost_its_name: bool,
}

/// Reads an archive. `moves` lists the directories that have another path here.
pub(crate) fn read(app: &App<'_>, name: &str, from: impl Read, moves: Vec<Move>) -> Result<Archive, AppError> {
    app.asker.may(PersonsTask::Import)?;
    let mut from = Digested { from, digest: Sha256::new() };
    let unpacked = Unpacked::read(app.store.dir(), &mut from, &Relocation::new(moves))?;
    if !has_only_zeros(&mut from)
        .map_err(|error| Refusal::failure(format!("cannot read the archive to its end: {error}")))?
    {
        let refusal = Refusal::failure("the archive cannot be imported: something comes after its end");
        return Err(refusal.hint("import one archive at a time").into());
    }
    let digest = from.digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(Archive { name: name.to_owned(), unpacked, digest })
}

impl Archive {
    /// Adapts the chain to this `claude`, and to the PATH and environment of `launch`.
    pub(crate) fn adapt(self, claude: Option<&Path>, launch: Launch) -> Result<Importable, AppError> {
        let Launch { path, environment, .. } = launch;
        let claude = program::locate(claude, None, path.as_ref().map(AsRef::as_ref));
        let claude = claude.map_err(RuntimeError::from)?;
        let adapted = self.unpacked.adapt(&Here { claude, path, environment })?;
        Ok(Importable { name: self.name, adapted, digest: self.digest })
    }
}

impl Importable {
    /// Everything that the chain would run.
    pub(crate) fn inventory(&self) -> &Inventory {
        self.adapted.inventory()
    }
}

/// Imports a chain that a person trusts. `listed` is the digest of the file that was listed for the person; `None` means this
/// file.
pub(crate) fn import(app: &App<'_>, archive: &Importable, listed: Option<&str>) -> Result<Outcome, AppError> {
    app.asker.may(PersonsTask::Import)?;
    if listed.is_some_and(|digest| digest != archive.digest) {
        let refusal = Refusal::new(format!("nothing was imported: {} is not the file that was listed", archive.name));
        return Err(refusal.hint("without --trust, import lists what the chain would run").into());
    }
    foreign_session::refuse_import(&archive.adapted.sessions(app.store.dir())?)?;
    let chain = app.store.housekeeping().import(&archive.adapted)?;
    let events = app.store.events(chain, 0)?;
    let has_lost_its_name = events.last().is_some_and(|event| matches!(event.entry, LogEntry::NameLost { .. }));
    Ok(Outcome { chain, has_lost_its_name })
}

/// Reads to the end. Programs pad archives with zeros.
fn has_only_zeros(from: &mut impl Read) -> io::Result<bool> {
    let (mut part, mut are_zeros) = ([0; 8192], true);
    loop {
        match from.read(&mut part)? {
            0 => return Ok(are_zeros),
            length => are_zeros &= part[..length].iter().all(|byte| *byte == 0),
        }
    }
}

struct Digested<R> {
    from: R,
    digest: Sha256,
}

impl<R: Read> Read for Digested<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.from.read(into)?;
        self.digest.update(&into[..length]);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::housekeeping::export::export;
    use crate::app::testing;
    use crate::store::Store;
    use crate::store::testing::store;

    /// An archive of a chain, and the chain.
    fn archive(store: &Store) -> (FrameId, Vec<u8>) {
        let chain = store.root();
        let mut archive = Vec::new();
        export(&testing::app(store), &chain.to_string()).unwrap().write(&mut archive).unwrap();
        (chain, archive)
    }

    fn read_here(app: &App<'_>, archive: &[u8]) -> Importable {
        let moves = vec!["/srv=/".parse().unwrap()];
        let read = read(app, "chain.tar", archive, moves).unwrap();
        read.adapt(Some(Path::new("/bin/sh")), Launch::default()).unwrap()
    }

    #[test]
    fn a_chain_is_imported_once_its_file_is_trusted() {
        let ((_from, from), (_to, to)) = (store(), store());
        let (chain, bytes) = archive(&from);
        let app = testing::app(&to);
        let found = read_here(&app, &bytes);
        assert_eq!(found.inventory().root, chain);
        let other = import(&app, &found, Some("0")).unwrap_err().to_string();
        assert_eq!(other, "nothing was imported: chain.tar is not the file that was listed");
        assert!(to.frame(chain).unwrap().is_none());
        let outcome = import(&app, &found, Some(&found.digest)).unwrap();
        assert_eq!((outcome.chain, outcome.has_lost_its_name), (chain, false));
        let imported = to.frame(chain).unwrap().unwrap();
        assert_eq!((imported.cwd, imported.launch.claude), ("/".into(), "/bin/sh".into()));
        assert!(import(&app, &found, None).is_err(), "it exists");
    }

    #[test]
    fn the_digest_is_that_of_everything_that_was_read() {
        let (_temp, store) = store();
        let (_, mut bytes) = archive(&store);
        let app = testing::app(&store);
        let digest = |bytes: &[u8]| read_here(&app, bytes).digest;
        let before = digest(&bytes);
        assert_eq!((before.len(), digest(&bytes)), (64, before.clone()));
        bytes.push(0);
        assert_ne!(digest(&bytes), before);
    }

    #[test]
    fn agents_are_refused() {
        let (_temp, store) = store();
        let (_, bytes) = archive(&store);
        let caller = store.start(store.root());
        let agent = testing::app_of(&store, caller);
        let refused = read(&agent, "chain.tar", &*bytes, Vec::new()).err().map(|error| error.to_string());
        assert_eq!(refused.unwrap(), "agents cannot import chains");
        let found = read_here(&testing::app(&store), &bytes);
        assert_eq!(import(&agent, &found, None).unwrap_err().to_string(), "agents cannot import chains");
    }
}

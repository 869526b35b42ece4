//! Object storage: a bucket of S3 or of a service like it, or a directory that all hosts have.

use std::collections::HashSet;
use std::env;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{ClientConfigKey, Error, ObjectStore, ObjectStoreExt, PutPayload, RetryConfig};
use reqwest::Url;
use tokio::runtime::{Builder, Runtime};
use uuid::Uuid;

use crate::store::error::{Result, StoreError};
use crate::store::files::durable::make_private;

/// How long one operation may take, with its retries.
const PATIENCE: Duration = Duration::from_secs(30);
const TO_CONNECT: Duration = Duration::from_secs(5);

/// The folder for objects in a directory.
const FOLDER: &str = "agent-cli-objects";

/// How many objects are written or deleted at the same time.
const AT_ONCE: usize = 8;

/// An operation that fails more slowly than this is not tried again for a while, because everything else would wait each time.
const SLOW: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_secs(60);

/// Object storage that this host may use.
#[derive(Debug)]
pub(crate) struct ObjectStorage {
    /// Where the objects are: `s3://BUCKET/PREFIX` or `file:///DIRECTORY`.
    place: String,
    objects: Box<dyn ObjectStore>,
    /// What the names of all objects begin with.
    prefix: Key,
    /// `None` only when this is dropped.
    runtime: Option<Runtime>,
    /// When an operation last failed slowly.
    failed: Mutex<Option<Instant>>,
}

impl Drop for ObjectStorage {
    fn drop(&mut self) {
        // Dropping a runtime blocks, which is not allowed in a task.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl ObjectStorage {
    /// The object storage at `place`. For a bucket, the environment has the credentials, the region and the address of the service, in
    /// the variables of the tools of AWS: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL` and others.
    pub(crate) fn new(place: &str) -> Result<Self> {
        let fault = |why: String| StoreError::ObjectStorage { place: place.to_owned(), why };
        let wrong = |error: &Error| fault(in_words(error));
        let (objects, prefix): (Box<dyn ObjectStore>, Key) = match Place::parse(place)? {
            Place::Directory(path) => {
                let folder = path.join(FOLDER);
                // Without its drive, the directory may still be there, on the disk of this host.
                let found = match folder.symlink_metadata() {
                    Ok(found) if found.is_dir() => found,
                    Ok(_) => return Err(fault(format!("{} is not a directory", folder.display()))),
                    Err(error) if error.kind() == ErrorKind::NotFound => {
                        return Err(fault(format!("{} is missing: is its drive mounted?", folder.display())));
                    }
                    Err(error) => return Err(fault(format!("{}: {error}", folder.display()))),
                };
                if let Some(why) = exposed(found.uid(), found.mode()) {
                    return Err(fault(format!("{} {why}", folder.display())));
                }
                let objects = LocalFileSystem::new_with_prefix(folder).map_err(|error| wrong(&error))?;
                (Box::new(objects.with_fsync(true).with_automatic_cleanup(true)), Key::default())
            }
            Place::Bucket { name, prefix } => {
                // This fails if a provider is installed already, which is as good.
                let _ = rustls::crypto::ring::default_provider().install_default();
                let retry = RetryConfig { max_retries: 3, retry_timeout: PATIENCE, ..RetryConfig::default() };
                let seconds = |time: Duration| format!("{} s", time.as_secs());
                let bucket = AmazonS3Builder::from_env()
                    .with_retry(retry)
                    .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::Timeout), seconds(PATIENCE))
                    .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::ConnectTimeout), seconds(TO_CONNECT));
                let mut is_here = false;
                for name in ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"] {
                    let address = env::var(name).unwrap_or_default();
                    is_here |=
                        !address.is_empty() && is_loopback(&address).map_err(|why| fault(format!("{name} {why}")))?;
                }
                // What stays on this machine needs no encryption.
                let bucket = if is_here { bucket.with_allow_http(true) } else { bucket };
                // Not all services can delete several objects in one request.
                let bucket = bucket.with_bucket_name(name).with_disable_bulk_delete(true).build();
                (Box::new(bucket.map_err(|error| wrong(&error))?), Key::from(prefix))
            }
        };
        // Nothing may fail after this: a runtime that is dropped in a task panics.
        let runtime = Builder::new_current_thread().enable_all().build().map_err(|error| fault(error.to_string()))?;
        Ok(Self { place: place.to_owned(), objects, prefix, runtime: Some(runtime), failed: Mutex::default() })
    }

    /// Makes the directory at `place` usable, if it is one.
    pub(crate) fn make_directory(place: &str) -> Result<()> {
        let Place::Directory(path) = Place::parse(place)? else { return Ok(()) };
        make_private(&path.join(FOLDER))
            .map_err(|error| StoreError::ObjectStorage { place: place.to_owned(), why: error.to_string() })
    }

    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Checks that objects can be written, read and deleted.
    pub(crate) fn check(&self) -> Result<()> {
        let name = format!("check-{}", Uuid::new_v4());
        self.put(vec![(name.clone(), b"agent-cli".to_vec())])?;
        let read = self.get(&name, 100)?;
        if let (_, Some(error)) = self.delete(&[name]) {
            return Err(error);
        }
        if read == b"agent-cli" {
            Ok(())
        } else {
            Err(self.fault("a test object had another content when it was read".to_owned()))
        }
    }

    /// Writes objects.
    pub(crate) fn put(&self, objects: Vec<(String, Vec<u8>)>) -> Result<()> {
        let put = |(name, content): (String, Vec<u8>)| async move {
            let key = self.key(&name);
            self.objects.put(&key, PutPayload::from(content)).await.map(drop)
        };
        self.run(stream::iter(objects).map(put).buffer_unordered(AT_ONCE).try_collect::<()>())
    }

    /// Reads an object of at most `limit` bytes.
    pub(crate) fn get(&self, name: &str, limit: usize) -> Result<Vec<u8>> {
        let key = self.key(name);
        let read = async {
            let mut parts = self.objects.get(&key).await?.into_stream();
            let mut content = Vec::new();
            while let Some(part) = parts.try_next().await? {
                content.extend_from_slice(&part);
                if content.len() > limit {
                    break;
                }
            }
            Ok(content)
        };
        let content = self.run(read)?;
        if content.len() > limit { Err(self.fault(format!("the object {key} is too large"))) } else { Ok(content) }
    }

    /// Deletes objects, also those that do not exist. Returns which are gone, and an error of the others.
    pub(crate) fn delete(&self, names: &[String]) -> (Vec<String>, Option<StoreError>) {
        let delete = |name: String| async move {
            match self.objects.delete(&self.key(&name)).await {
                Ok(()) | Err(Error::NotFound { .. }) => Ok(Ok(name)),
                Err(error) => Ok(Err(in_words(&error))),
            }
        };
        let done = self.run(stream::iter(names.to_vec()).map(delete).buffer_unordered(AT_ONCE).try_collect::<Vec<_>>());
        match done {
            Ok(done) => {
                let (gone, failed): (Vec<_>, Vec<_>) = done.into_iter().partition(std::result::Result::is_ok);
                let failed = failed.into_iter().find_map(std::result::Result::err).map(|why| self.fault(why));
                (gone.into_iter().flatten().collect(), failed)
            }
            Err(error) => (Vec::new(), Some(error)),
        }
    }

    /// Which of these objects exist.
    pub(crate) fn present(&self, names: Vec<String>) -> Result<HashSet<String>> {
        let head = |name: String| async move {
            match self.objects.head(&self.key(&name)).await {
                Ok(_) => Ok(Some(name)),
                Err(Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        };
        let found = self.run(stream::iter(names).map(head).buffer_unordered(AT_ONCE).try_collect::<Vec<_>>())?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Whether operations are refused for a while, because one has failed slowly.
    pub(crate) fn is_pausing(&self) -> bool {
        self.failed().is_some_and(|at| at.elapsed() < PAUSE)
    }

    fn failed(&self) -> MutexGuard<'_, Option<Instant>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn key(&self, name: &str) -> Key {
        name.split('/').fold(self.prefix.clone(), Key::join)
    }

    /// Runs an operation in another thread, because this one may be executing tasks.
    fn run<T: Send>(&self, operation: impl Future<Output = object_store::Result<T>> + Send) -> Result<T> {
        if self.is_pausing() {
            return Err(self.fault(format!("it has failed within the last {} s", PAUSE.as_secs())));
        }
        let began = Instant::now();
        let limited = async {
            tokio::time::timeout(PATIENCE, operation)
                .await
                .map_err(|_| format!("no answer within {} s", PATIENCE.as_secs()))
        };
        let runtime = self.runtime.as_ref().expect("it is taken only when this is dropped");
        let done = thread::scope(|scope| scope.spawn(|| runtime.block_on(limited)).join());
        let done = done.unwrap_or_else(|_| Err("its client panicked".to_owned()));
        let done = done.and_then(|done| done.map_err(|error| in_words(&error))).map_err(|why| self.fault(why));
        if done.is_err() && began.elapsed() > SLOW {
            *self.failed() = Some(Instant::now());
        }
        done
    }

    fn fault(&self, why: String) -> StoreError {
        StoreError::ObjectStorage { place: self.place.clone(), why }
    }
}

/// How others could use a folder with this owner and mode.
fn exposed(owner: u32, mode: u32) -> Option<&'static str> {
    if owner != rustix::process::geteuid().as_raw() {
        return Some("belongs to another user");
    }
    (mode & 0o077 != 0).then_some("can be used by others: chmod 700")
}

/// What an address of object storage names.
#[derive(Debug, PartialEq, Eq)]
enum Place<'a> {
    Bucket { name: &'a str, prefix: &'a str },
    Directory(&'a Path),
}

impl<'a> Place<'a> {
    fn parse(text: &'a str) -> Result<Self> {
        let wrong = |why: &str| StoreError::BadStore { why: format!("copies= {why}") };
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(wrong("contains a blank or a control character"));
        }
        if let Some(path) = text.strip_prefix("file://").map(Path::new) {
            return if path.is_absolute() {
                Ok(Self::Directory(path))
            } else {
                Err(wrong("needs an absolute path: file:///DIRECTORY"))
            };
        }
        let Some(rest) = text.strip_prefix("s3://") else {
            return Err(wrong("must be s3://BUCKET/PREFIX or file:///DIRECTORY"));
        };
        let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c)) {
            return Err(wrong("does not name a valid bucket: s3://BUCKET/PREFIX"));
        }
        Ok(Self::Bucket { name, prefix })
    }
}

/// Checks the address of object storage.
pub(crate) fn check_address(place: &str) -> Result<()> {
    Place::parse(place).map(drop)
}

/// Whether the address of a service is on this machine, or why it is not an address.
fn is_loopback(address: &str) -> std::result::Result<bool, String> {
    let url = Url::parse(address).map_err(|error| format!("is not an address such as https://HOST: {error}"))?;
    let host = url.host_str().filter(|_| matches!(url.scheme(), "http" | "https"));
    let host = host.ok_or("is not an address such as https://HOST: it begins with another word")?;
    let number = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    Ok(host == "localhost" || number.is_ok_and(|address| address.is_loopback()))
}

/// The innermost cause, in one line, because the others repeat the address of the object.
fn in_words(error: &Error) -> String {
    const LONGEST: usize = 300;
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string().split_whitespace().collect::<Vec<_>>().join(" ").chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn in_directory(path: &Path) -> ObjectStorage {
        let place = format!("file://{}", path.display());
        ObjectStorage::make_directory(&place).unwrap();
        ObjectStorage::new(&place).unwrap()
    }

    #[test]
    fn what_was_written_is_read_until_it_is_deleted() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a/b");
        let storage = in_directory(&path);
        let folder = path.join(FOLDER);
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        storage.check().unwrap();
        let objects: Vec<_> = (0..20_u8).map(|number| (format!("frame/{number}"), vec![number; 1000])).collect();
        storage.put(objects.clone()).unwrap();
        for (name, content) in &objects {
            assert_eq!(storage.get(name, 1000).unwrap(), *content);
        }
        let large = storage.get("frame/1", 999).unwrap_err().to_string();
        assert!(large.ends_with("the object frame/1 is too large"), "{large}");
        let present = storage.present(vec!["frame/1".to_owned(), "frame/100".to_owned()]).unwrap();
        assert_eq!(present, HashSet::from(["frame/1".to_owned()]));
        let names: Vec<String> = objects.into_iter().map(|(name, _)| name).chain(["never/there".to_owned()]).collect();
        // What cannot be deleted keeps nothing else from being deleted.
        fs::create_dir_all(folder.join("frame/full/x")).unwrap();
        let with_full: Vec<String> = [vec!["frame/full".to_owned()], names.clone()].concat();
        let (gone, failed) = storage.delete(&with_full);
        assert_eq!((gone.len(), failed.is_some()), (names.len(), true));
        assert!(matches!(storage.get(&names[0], 1000), Err(StoreError::ObjectStorage { .. })));
        assert!(!folder.join("frame/0").exists());
    }

    #[test]
    fn tasks_can_use_it_and_drop_it() {
        let temp = tempfile::tempdir().unwrap();
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            in_directory(temp.path()).check().unwrap();
            for missing in ["file:///nowhere/at/all", "file:///dev/null"] {
                ObjectStorage::new(missing).unwrap_err();
            }
        });
    }

    #[test]
    fn an_address_names_a_bucket_or_a_directory() {
        let bucket = |name, prefix| Place::Bucket { name, prefix };
        assert_eq!(Place::parse("s3://my.bucket-1").unwrap(), bucket("my.bucket-1", ""));
        assert_eq!(Place::parse("s3://bucket/a/b").unwrap(), bucket("bucket", "a/b"));
        assert_eq!(Place::parse("file:///srv/x").unwrap(), Place::Directory(Path::new("/srv/x")));
        for wrong in [
            "", "bucket", "S3://b", "http://b/c", "s3://", "s3:///x", "s3://user:key@b/x", "s3://b/a b", "file://x",
            "file://", "s3://b/\n",
        ] {
            assert!(Place::parse(wrong).is_err(), "{wrong:?}");
        }
        for (address, expected) in [
            ("http://127.0.0.1:9000", true),
            ("http://localhost", true),
            ("http://[::1]:9000/x", true),
            ("http://localhost.example", false),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(is_loopback(address), Ok(expected), "{address}");
        }
        for wrong in ["", "127.0.0.1:9000", "localhost:9000", "minio.example", "//host", "ftp://host", "http://"] {
            assert!(is_loopback(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_directory_must_be_there_and_private() {
        let temp = tempfile::tempdir().unwrap();
        let place = format!("file://{}", temp.path().display());
        let why = |place: &str| ObjectStorage::new(place).unwrap_err().to_string();
        assert!(why(&place).contains("is its drive mounted?"));
        drop(in_directory(temp.path()));
        fs::set_permissions(temp.path().join(FOLDER), fs::Permissions::from_mode(0o755)).unwrap();
        assert!(why(&place).contains("can be used by others"));
        let own = rustix::process::geteuid().as_raw();
        assert_eq!((exposed(own, 0o40700), exposed(own + 1, 0o40700)), (None, Some("belongs to another user")));
        let file = temp.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(ObjectStorage::make_directory(&format!("file://{}", file.display())).is_err());
    }
}

//! Copies of sessions in object storage: a service on this machine that speaks the part of S3 that is needed. Without
//! `AGENT_CLI_TEST_SERVER`, these tests check nothing.

use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};

use crate::gate::wait_until;
use crate::postgres;
use crate::world::{World, write_config};

/// What the service has stored, by bucket and name, and whether it refuses everything.
#[derive(Default)]
struct Stored {
    objects: BTreeMap<String, Bytes>,
    refuses: bool,
}

#[derive(Clone)]
struct Service {
    url: String,
    stored: Arc<Mutex<Stored>>,
}

impl Service {
    fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        listener.set_nonblocking(true).expect("a socket");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let service = Self { url, stored: Arc::default() };
        let stored = Arc::clone(&service.stored);
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("it is not blocking");
                axum::serve(listener, Router::new().fallback(answer).with_state(stored)).await
            })
        });
        service
    }

    fn names(&self) -> Vec<String> {
        self.stored.lock().expect("no panic").objects.keys().cloned().collect()
    }

    /// A host that keeps copies there.
    fn host(&self, database: &str) -> World {
        let world = World::with_hooks()
            .with("AGENT_CLI_STORE", format!("{database}?copies=s3://bucket/our/chains/"))
            .with("AWS_ENDPOINT_URL", &self.url)
            .with("AWS_REGION", "eu-central-1")
            .with("AWS_ACCESS_KEY_ID", "key-of-tests")
            .with("AWS_SECRET_ACCESS_KEY", "secret-of-tests");
        write_config(&world, "lease = \"2s\"\n");
        world
    }
}

async fn answer(
    State(stored): State<Arc<Mutex<Stored>>>,
    method: Method,
    uri: Uri,
    head: HeaderMap,
    body: Bytes,
) -> (StatusCode, [(&'static str, &'static str); 2], Bytes) {
    let head_of_answer = [("etag", "\"tag\""), ("last-modified", "Fri, 27 Nov 2026 10:00:00 GMT")];
    let (status, content) =
        answered(&mut stored.lock().expect("no panic"), &method, uri.path().to_owned(), &head, body);
    (status, head_of_answer, content)
}

fn answered(stored: &mut Stored, method: &Method, name: String, head: &HeaderMap, body: Bytes) -> (StatusCode, Bytes) {
    let signed = head
        .get("authorization")
        .is_some_and(|it| it.as_bytes().starts_with(b"AWS4-HMAC-SHA256 Credential=key-of-tests/"));
    if stored.refuses || !signed {
        return (StatusCode::FORBIDDEN, "<Error><Code>AccessDenied</Code></Error>".into());
    }
    match *method {
        Method::PUT => {
            stored.objects.insert(name, body);
            (StatusCode::OK, Bytes::new())
        }
        // The server leaves out the content of an answer to HEAD.
        Method::GET | Method::HEAD => match stored.objects.get(&name) {
            Some(content) => (StatusCode::OK, content.clone()),
            None => (StatusCode::NOT_FOUND, "<Error><Code>NoSuchKey</Code></Error>".into()),
        },
        Method::DELETE => {
            stored.objects.remove(&name);
            (StatusCode::NO_CONTENT, Bytes::new())
        }
        _ => (StatusCode::METHOD_NOT_ALLOWED, Bytes::new()),
    }
}

fn database() -> Option<String> {
    std::env::var_os("AGENT_CLI_TEST_SERVER")?;
    Some(postgres::new_database())
}

#[test]
fn a_chain_continues_from_object_storage_when_its_host_is_lost() {
    let Some(database) = database() else { return };
    let service = Service::start();
    let [one, other] = [(); 2].map(|()| service.host(&database));
    one.file("root.md", "run echo begun >> marks\nask When?\nreply {result}\n");
    let shared = format!("lease = \"2s\"\nshared-directories = [\"{}\"]\n", one.project().display());
    write_config(&other, &shared);
    let id = one.spawn_paused("root.md");
    let names = service.names();
    let prefix = format!("/bucket/our/chains/{id}");
    assert!(!names.is_empty() && names.iter().all(|name| name.starts_with(&prefix)), "{names:?}");
    let none_here = "ALTER TABLE agent_cli.copies ADD CHECK (content IS NULL)";
    postgres::execute(&database, none_here);
    fs::remove_dir_all(one.state()).expect("it can be removed");
    fs::remove_dir_all(one.home().join(".claude")).expect("it can be removed");
    other.answer("tomorrow");
    let mut resumed = other.run(&["resume", &id]);
    wait_until("the lease of the lost host ends", || {
        resumed = other.run(&["resume", &id]);
        !resumed.stderr.contains("run on the host")
    });
    resumed.prints("tomorrow");
    assert_eq!(one.marks(), "begun\n", "it has continued its conversation");
    other.run(&["fsck"]).succeeds();
    other.run(&["rm", &id, "--yes"]).succeeds();
    assert_eq!(service.names(), [] as [&str; 0]);
}

#[test]
fn a_pause_is_recorded_when_object_storage_fails() {
    let Some(database) = database() else { return };
    let service = Service::start();
    let world = service.host(&database);
    world.file("root.md", "ask When?\nreply {result}\n");
    world.run(&["ls"]).succeeds();
    service.stored.lock().expect("no panic").refuses = true;
    let paused = world.run(&["spawn", "root.md"]);
    assert!(paused.succeeds().stderr.contains("cannot use the object storage s3://bucket/our/chains"), "{paused}");
    assert!(paused.stderr.contains("AccessDenied"), "{paused}");
    service.stored.lock().expect("no panic").refuses = false;
    world.answer("tomorrow");
    world.run(&["resume", "--all"]).succeeds();
    world.run(&["gc"]).succeeds();
    world.run(&["fsck"]).succeeds();
    service.stored.lock().expect("no panic").refuses = true;
    let found = world.run(&["doctor", "--json"]).json();
    assert!(found.to_string().contains("AccessDenied"), "{found}");
}

#[test]
fn moving_chains_to_a_server_copies_their_files_to_object_storage() {
    let Some(database) = database() else { return };
    let service = Service::start();
    let world = service.host(&database).with("AGENT_CLI_STORE", "");
    world.file("root.md", "ask When?\nreply {result}\n");
    world.spawn_paused("root.md");
    let address = format!("{database}?copies=s3://bucket");
    service.stored.lock().expect("no panic").refuses = true;
    assert!(world.run(&["move", "--to", &address]).exits_with(1).stderr.contains("AccessDenied"));
    service.stored.lock().expect("no panic").refuses = false;
    world.run(&["move", "--to", &address]).succeeds();
    assert!(!service.names().is_empty());
    world.answer("tomorrow");
    world.run(&["resume", "--all"]).succeeds();
}

#[test]
fn object_storage_that_cannot_be_used_is_not_chosen() {
    let Some(database) = database() else { return };
    let service = Service::start();
    service.stored.lock().expect("no panic").refuses = true;
    let refused = service.host(&database).run(&["ls"]);
    assert!(refused.exits_with(1).stderr.contains("AccessDenied"), "{refused}");
    assert!(refused.stderr.contains("AWS_ACCESS_KEY_ID"), "{refused}");
    let world = World::with_hooks();
    for (place, why) in [
        ("s3:/bucket", "must be s3://"),
        ("s3://user@bucket", "does not name a valid bucket"),
        ("file://relative", "absolute path"),
    ] {
        let refused = world.run(&["ls", "--store", &format!("{database}?copies={place}")]);
        assert!(refused.exits_with(2).stderr.contains(why), "{refused}");
    }
    // The address was not kept.
    world.file("root.md", "reply ok\n");
    world.run(&["spawn", "root.md"]).prints("ok");
}

//! Spans of OpenTelemetry for attempts.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::Value;

use crate::world::World;

/// A collector on this machine, and the spans that it gets.
fn collector() -> (String, Receiver<Value>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let (sender, spans) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            for span in received(stream.expect("a connection")) {
                if sender.send(span).is_err() {
                    return;
                }
            }
        }
    });
    (url, spans)
}

fn received(stream: TcpStream) -> Vec<Value> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a head");
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().expect("a length");
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a body");
    reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").expect("it reads the answer");
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().expect("spans").clone()
}

fn attribute<'a>(span: &'a Value, key: &str) -> &'a Value {
    let all = span["attributes"].as_array().expect("attributes");
    let found = all.iter().find(|attribute| attribute["key"] == key).expect(key);
    found["value"].as_object().and_then(|value| value.values().next()).expect("a value")
}

#[test]
fn the_attempts_of_a_chain_are_one_trace_whichever_process_ran_them() {
    let (url, spans) = collector();
    let world = World::new().with("AGENT_CLI_TRACES", &url);
    // These may be meant for Claude Code.
    let world = world.with("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9").with("OTEL_SDK_DISABLED", "true");
    let world = world.with("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:9");
    let world = world.with("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc").with("OTEL_EXPORTER_OTLP_TIMEOUT", "1");
    world.file("root.md", "spawn child.md\nreply {result}\n");
    world.file("child.md", "ask When?\nreply {result}\n");
    let id = world.spawn_paused("root.md");
    world.answer("now");
    world.run(&["resume", &id]).prints("now");
    // The order in which they end: root, child, and each once more.
    let spans: Vec<Value> = (0..4).map(|_| spans.recv().expect("a span")).collect();
    let trace = id.replace('-', "");
    assert!(spans.iter().all(|span| span["traceId"] == trace.as_str()), "{spans:#?}");
    let outcomes: Vec<_> = spans.iter().map(|span| attribute(span, "agent_cli.outcome").clone()).collect();
    assert_eq!(outcomes, ["requested", "requested", "reply", "reply"]);
    let parents: Vec<_> = spans.iter().map(|span| span["parentSpanId"].clone()).collect();
    assert_eq!(parents, ["".into(), spans[0]["spanId"].clone(), spans[0]["spanId"].clone(), "".into()]);
    assert_eq!(attribute(&spans[0], "agent_cli.chain"), id.as_str());
    assert!(spans.iter().all(|span| span["status"]["code"] == 1));
}

#[test]
fn why_an_agent_failed_is_in_its_span() {
    let (url, spans) = collector();
    let world = World::new().with("AGENT_CLI_TRACES", &url);
    world.file("root.md", "fail out of turns\n");
    world.run(&["spawn", "root.md"]).exits_with(1);
    let span = spans.recv().expect("a span");
    assert_eq!(span["status"]["code"], 2, "{span:#}");
    assert!(span["status"]["message"].as_str().expect("why").contains("out of turns"), "{span:#}");
}

#[test]
fn a_collector_that_cannot_be_used_affects_nothing() {
    for (url, said) in
        [("http://127.0.0.1:9", ""), ("https://collector", "https is not supported"), ("nowhere", "not a URL")]
    {
        let world = World::new().with("AGENT_CLI_TRACES", url);
        world.file("root.md", "reply done\n");
        let spawned = world.run(&["spawn", "root.md"]);
        spawned.prints("done");
        assert!(spawned.stderr.contains(said), "{spawned}");
        assert_eq!(spawned.stderr.contains("traces"), !said.is_empty(), "{spawned}");
    }
}

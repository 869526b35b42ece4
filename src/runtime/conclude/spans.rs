//! An OpenTelemetry span for each attempt that has ended, sent to a collector by OTLP over HTTP.
//!
//! The ids of a span are made from those of the chain and its attempts, so the spans that several processes and hosts send, days
//! apart, form one trace.

mod endpoint;
pub(crate) mod of_attempt;
mod plain_http;

use std::fmt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use std::{iter, thread};

use jiff::Timestamp;
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_otlp::{ExporterBuildError, Protocol, RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks};
use tracing::debug;
use uuid::Uuid;

use crate::core::id::{AttemptId, FrameId};
pub(crate) use crate::runtime::conclude::spans::endpoint::BadEndpoint;
use crate::runtime::conclude::spans::endpoint::traces_url;
use crate::runtime::conclude::spans::plain_http::PlainHttp;

const SERVICE: &str = "agent-cli";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How long a collector can delay the end of a command, and how long a request may take.
const PATIENCE: Duration = Duration::from_secs(2);

const QUEUE_LENGTH: usize = 1024;
const SPANS_PER_REQUEST: usize = 256;

/// An attempt that has ended.
pub(crate) struct AttemptSpan {
    pub(crate) root: FrameId,
    pub(crate) attempt: AttemptId,
    /// The attempt whose request started the agent.
    pub(crate) parent: Option<AttemptId>,
    pub(crate) name: String,
    pub(crate) began: Timestamp,
    pub(crate) ended: Timestamp,
    /// Why it failed, if it did.
    pub(crate) error: Option<String>,
    pub(crate) attributes: Vec<(&'static str, Value)>,
}

impl AttemptSpan {
    fn into_data(self, scope: InstrumentationScope) -> SpanData {
        SpanData {
            span_context: SpanContext::new(
                trace_id(self.root.0),
                span_id(self.attempt.0),
                TraceFlags::SAMPLED,
                false,
                TraceState::NONE,
            ),
            parent_span_id: self.parent.map_or(SpanId::INVALID, |parent| span_id(parent.0)),
            parent_span_is_remote: self.parent.is_some(),
            span_kind: SpanKind::Internal,
            name: self.name.into(),
            start_time: self.began.into(),
            // The clock may have been set back, or it is another host's.
            end_time: self.ended.max(self.began).into(),
            attributes: self.attributes.into_iter().map(|(key, value)| KeyValue::new(key, value)).collect(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: self.error.map_or(Status::Ok, Status::error),
            instrumentation_scope: scope,
        }
    }
}

fn trace_id(chain: Uuid) -> TraceId {
    // Zero is not valid.
    TraceId::from(chain.as_u128().max(1))
}

fn span_id(attempt: Uuid) -> SpanId {
    let (first_half, _) = attempt.as_u64_pair();
    // Zero means that there is no span.
    SpanId::from(first_half.max(1))
}

/// Sends spans in a thread. Spans that cannot be sent are lost, which only the log reports.
///
/// When this is dropped, it waits for unsent spans, for at most [`PATIENCE`].
pub(crate) struct Spans {
    scope: InstrumentationScope,
    /// `None` while this is dropped.
    queue: Option<SyncSender<SpanData>>,
    /// Nothing is sent: it is closed when the thread has ended. The lock lets threads share this struct.
    ended: Mutex<Receiver<()>>,
}

impl fmt::Debug for Spans {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Spans")
    }
}

impl Spans {
    /// `endpoint`: the URL of the collector.
    pub(crate) fn new(endpoint: &str) -> Result<Self, BadEndpoint> {
        let exporter = exporter(traces_url(endpoint)?)?;
        let (queue, queued) = sync_channel(QUEUE_LENGTH);
        let (end, ended) = channel();
        start_sending(exporter, queued, end);
        let scope = InstrumentationScope::builder(SERVICE).with_version(VERSION).build();
        Ok(Self { scope, queue: Some(queue), ended: Mutex::new(ended) })
    }

    /// Sends a span, without waiting for the collector.
    pub(crate) fn record(&self, span: AttemptSpan) {
        let Some(queue) = &self.queue else { return };
        if let Err(error) = queue.try_send(span.into_data(self.scope.clone())) {
            debug!(%error, "a span is lost");
        }
    }
}

impl Drop for Spans {
    fn drop(&mut self) {
        self.queue = None;
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        if ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            debug!("spans are lost: the collector took too long");
        }
    }
}

fn exporter(url: String) -> Result<SpanExporter, ExporterBuildError> {
    let mut exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(PlainHttp { patience: PATIENCE })
        .with_endpoint(url)
        // The environment may choose another protocol for Claude Code's own telemetry.
        .with_protocol(Protocol::HttpJson)
        .with_timeout(PATIENCE)
        // A collector that is down would delay the end of each command.
        .with_retry_policy(RetryPolicy::disabled())
        .build()?;
    let resource = Resource::builder()
        .with_service_name(SERVICE)
        .with_attribute(KeyValue::new("service.version", VERSION))
        .build();
    exporter.set_resource(&resource);
    Ok(exporter)
}

/// The SDK's `BatchSpanProcessor` would panic if no thread can be started, and keep spans for seconds, in which a kill would lose
/// them.
fn start_sending(exporter: SpanExporter, queued: Receiver<SpanData>, end: Sender<()>) {
    let thread = thread::Builder::new().name("spans".to_owned()).spawn(move || {
        send_all(&exporter, &queued);
        drop(end);
    });
    if let Err(error) = thread {
        debug!(%error, "spans cannot be sent: no thread could be started");
    }
}

fn send_all(exporter: &SpanExporter, queued: &Receiver<SpanData>) {
    while let Ok(first) = queued.recv() {
        let batch: Vec<_> = iter::once(first).chain(queued.try_iter()).take(SPANS_PER_REQUEST).collect();
        let spans = batch.len();
        if let Err(error) = futures_executor::block_on(exporter.export(batch)) {
            debug!(spans, %error, "spans are lost");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::{Ipv4Addr, TcpListener};
    use std::thread::JoinHandle;

    use serde_json::{Value as Json, json};

    use super::*;

    const CHAIN: Uuid = Uuid::from_u128(0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
    const FIRST: Uuid = Uuid::from_u128(0x00f0_67aa_0ba9_42b7_9999_9999_9999_9999);
    const SECOND: Uuid = Uuid::from_u128(0xb7ad_6b71_6920_4331_8888_8888_8888_8888);

    fn listener() -> (TcpListener, String) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        (listener, url)
    }

    /// A collector that accepts so many requests, and returns their bodies.
    fn collector(requests: usize, status: &'static str) -> (JoinHandle<Vec<Json>>, String) {
        let (listener, url) = listener();
        let take = move |stream: std::io::Result<std::net::TcpStream>| {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let lines = reader.by_ref().lines().map(Result::unwrap);
            let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            assert_eq!(head[0], "POST /v1/traces HTTP/1.1");
            let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            stream.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\n{{}}").as_bytes()).unwrap();
            serde_json::from_slice(&body).unwrap()
        };
        (thread::spawn(move || listener.incoming().take(requests).map(take).collect()), url)
    }

    fn attempt(attempt: Uuid, parent: Option<Uuid>) -> AttemptSpan {
        AttemptSpan {
            root: FrameId(CHAIN),
            attempt: AttemptId(attempt),
            parent: parent.map(AttemptId),
            name: "review".to_owned(),
            began: "2026-01-02T03:04:05.000000006Z".parse().unwrap(),
            ended: "2026-01-02T03:14:05.5Z".parse().unwrap(),
            error: None,
            attributes: Vec::new(),
        }
    }

    #[test]
    fn spans_of_several_processes_form_one_trace() {
        let (collector, url) = collector(2, "200 OK");
        let failed = AttemptSpan {
            error: Some("out of turns".to_owned()),
            attributes: vec![("requests", 3.into()), ("model", "opus".into())],
            // The clock was set back.
            ended: Timestamp::UNIX_EPOCH,
            ..attempt(SECOND, Some(FIRST))
        };
        for span in [attempt(FIRST, None), failed] {
            Spans::new(&url).unwrap().record(span);
        }
        let received = collector.join().unwrap();
        let span = |at: usize| received[at]["resourceSpans"][0]["scopeSpans"][0]["spans"][0].clone();
        let (first, second) = (span(0), span(1));
        assert_eq!(first["traceId"], "0af7651916cd43dd8448eb211c80319c");
        assert_eq!((&second["traceId"], &second["parentSpanId"]), (&first["traceId"], &first["spanId"]));
        assert_eq!((&first["spanId"], &first["parentSpanId"]), (&json!("00f067aa0ba942b7"), &json!("")));
        assert_eq!(first["startTimeUnixNano"], "1767323045000000006");
        assert_eq!(first["endTimeUnixNano"], "1767323645500000000");
        assert_eq!(second["endTimeUnixNano"], second["startTimeUnixNano"]);
        assert_eq!((&first["status"]["code"], &second["status"]["code"]), (&json!(1), &json!(2)));
        assert_eq!(second["status"]["message"], "out of turns");
        assert_eq!(second["attributes"][1], json!({"key": "model", "value": {"stringValue": "opus"}}));
        let resource = received[0]["resourceSpans"][0]["resource"].to_string();
        assert!(resource.contains("agent-cli") && resource.contains(VERSION), "{resource}");
    }

    #[test]
    fn a_collector_that_fails_or_does_not_answer_delays_nothing_for_long() {
        let (refusing, url) = collector(1, "503 Service Unavailable");
        Spans::new(&url).unwrap().record(attempt(FIRST, None));
        assert_eq!(refusing.join().unwrap().len(), 1, "it is asked once");
        let (silent, url) = listener();
        let spans = Spans::new(&url).unwrap();
        (0..2 * QUEUE_LENGTH).for_each(|_| spans.record(attempt(FIRST, None)));
        drop(spans);
        drop(silent);
        Spans::new(&url).unwrap().record(attempt(FIRST, None));
    }
}

//! An HTTP client with what the exporter needs: one request for each connection, without TLS.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use http::{Request, Response, StatusCode, Uri};
use opentelemetry_http::{Bytes, HttpClient, HttpError};
use tracing::debug;

const LONGEST_ANSWER: u64 = 64 * 1024;

/// It blocks its thread, which does nothing else.
#[derive(Debug)]
pub(super) struct PlainHttp {
    pub(super) patience: Duration,
}

#[async_trait]
impl HttpClient for PlainHttp {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = exchange(&request, self.patience).inspect_err(|error| {
            // The exporter reports no details.
            debug!(url = %request.uri(), %error, "the collector cannot be reached");
        })?;
        // The collector may refuse some of the spans.
        debug!(answer = ?String::from_utf8_lossy(&answer), "the collector answered");
        let status = status(&answer).ok_or("the collector does not speak HTTP/1")?;
        Ok(Response::builder().status(status).body(Bytes::new())?)
    }
}

fn exchange(request: &Request<Bytes>, patience: Duration) -> io::Result<Vec<u8>> {
    let mut stream = connect(request.uri(), Instant::now() + patience)?;
    stream.set_write_timeout(Some(patience))?;
    stream.set_read_timeout(Some(patience))?;
    stream.write_all(&on_the_wire(request))?;
    let mut answer = Vec::new();
    match stream.take(LONGEST_ANSWER).read_to_end(&mut answer) {
        // The collector has answered, but does not close the connection properly.
        Err(_) if status(&answer).is_some() => Ok(answer),
        result => result.map(|_| answer),
    }
}

fn connect(url: &Uri, deadline: Instant) -> io::Result<TcpStream> {
    let host = url.host().unwrap_or_default();
    let address = format!("{host}:{}", url.port_u16().unwrap_or(80));
    let mut failure = io::Error::from(ErrorKind::NotFound);
    for address in address.to_socket_addrs()? {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn on_the_wire(request: &Request<Bytes>) -> Vec<u8> {
    let url = request.uri();
    let target = url.path_and_query().map_or("/", |target| target.as_str());
    let host = url.authority().map_or("", |authority| authority.as_str());
    let length = request.body().len();
    let mut bytes = format!(
        "{} {target} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {length}\r\n",
        request.method()
    )
    .into_bytes();
    for (name, value) in request.headers() {
        bytes.extend_from_slice(name.as_str().as_bytes());
        bytes.extend_from_slice(b": ");
        bytes.extend_from_slice(value.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(request.body());
    bytes
}

/// The status of an answer, which begins like `HTTP/1.1 200 OK`.
fn status(answer: &[u8]) -> Option<StatusCode> {
    let after_version = answer.strip_prefix(b"HTTP/1.")?;
    StatusCode::from_bytes(after_version.get(2..5)?).ok()
}

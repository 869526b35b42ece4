//! Sends the changes of a view to the browser that shows it.
//!
//! The id of an event is a digest of the browser's content after that event. With it, a restarted server knows whether the
//! browser has missed anything.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use jiff::Timestamp;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::app::fronts::live_view::{Made, Seen, Update};
use crate::page::Host;
use crate::page::state::{Page, Visitor, refused};
use crate::store::Attending;

/// How soon a browser reconnects, and how often the server sends a sign of life.
const RETRY: Duration = Duration::from_secs(2);
const ALIVE: Duration = Duration::from_secs(15);
/// How long to wait for further changes, so that they are sent together.
const GATHER: Duration = Duration::from_millis(60);

/// A browser that follows a view.
struct Following<H: Host> {
    page: Arc<Page<H>>,
    visitor: Visitor,
    of: String,
    seen: Seen,
    /// The view that was sent last.
    made: Option<Made>,
    follows: Vec<PathBuf>,
    receiver: watch::Receiver<u64>,
    events: VecDeque<Event>,
    _permit: OwnedSemaphorePermit,
    /// A person may see the questions. Without this mark, calls do not linger.
    _attending: Option<Attending>,
}

impl<H: Host> Drop for Following<H> {
    fn drop(&mut self) {
        self.page.changes.follow(&self.follows, &[]);
    }
}

pub(super) async fn stream<H: Host>(
    State(page): State<Arc<Page<H>>>,
    Extension(visitor): Extension<Visitor>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    let Ok(permit) = Arc::clone(&page.streams).try_acquire_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many browsers follow something").into_response();
    };
    let of = query.get("of").cloned().unwrap_or_default();
    let receiver = page.changes.receiver();
    // Report at once whether the view exists.
    if let Err(problem) = page.followed(&of).await {
        return refused(&problem);
    }
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    let following = Following {
        seen: Seen { view: None, digest: last.or_else(|| query.get("shown").cloned()) },
        events: VecDeque::from([Event::default().retry(RETRY)]),
        made: None,
        follows: Vec::new(),
        _attending: page.attend(),
        page,
        visitor,
        of,
        receiver,
        _permit: permit,
    };
    let events = stream::unfold(following, |mut following| async move {
        let event = following.next().await?;
        Some((Ok::<_, Infallible>(event), following))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(ALIVE)).into_response()
}

impl<H: Host> Following<H> {
    /// The next event. `None` if the stream has ended.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Some(event);
            }
            if let Some(made) = &self.made {
                while !self.page.is_stale(made) {
                    let left = made.view.stale_at.duration_since(Timestamp::now());
                    let left = Duration::try_from(left).unwrap_or_default();
                    if let Ok(changed) = tokio::time::timeout(left, self.receiver.changed()).await {
                        changed.ok()?;
                    }
                }
                tokio::time::sleep_until(made.rests_until.max(Instant::now() + GATHER).into()).await;
            }
            self.receiver.borrow_and_update();
            if !self.page.knows(&self.visitor) {
                return None;
            }
            self.look().await?;
        }
    }

    /// Turns the changes into events.
    async fn look(&mut self) -> Option<()> {
        let made = self.page.followed(&self.of).await.ok()?;
        let view = Arc::clone(&made.view);
        self.page.changes.follow(&self.follows, &view.follows);
        self.follows.clone_from(&view.follows);
        self.made = Some(made);
        for (update, digest) in self.seen.updates(view) {
            let (name, id, html) = match update {
                Update::Replace(id, html) => ("replace", id, html),
                Update::Append(id, html) => ("append", id, html),
            };
            let event = Event::default().event(name).data(json!({ "id": id, "html": html }).to_string());
            self.events.push_back(digest.into_iter().fold(event, Event::id));
        }
        Some(())
    }
}

//! The state that all requests share.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Form, FromRequest, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use maud::html;
use tokio::sync::{Mutex, Semaphore};

use crate::app::App;
use crate::app::error::AppError;
use crate::app::fronts::live_view::{Made, SharedViews};
use crate::app::fronts::page_addresses::{Addresses, Connection};
use crate::core::steering::origin::FromPage;
use crate::core::text::escape;
use crate::page::views::{self, Target, layout};
use crate::page::{Host, Options, Problem, ProblemKind};
use crate::runtime::activity::changes::Changes;
use crate::store::{Attending, Browsers, Serving, StateDir, Store};

/// The sender of a request.
#[derive(Clone, Debug)]
pub(super) struct Visitor {
    pub(super) connection: Connection,
    pub(super) is_of_agent: bool,
    pub(super) browser: FromPage,
    pub(super) cookie: Option<String>,
}

/// The server of the page, and its shared state.
pub(super) struct Page<H> {
    pub(super) host: H,
    dir: StateDir,
    pub(super) read_only: bool,
    pub(super) changes: Changes,
    /// How many more browsers can follow a view.
    pub(super) streams: Arc<Semaphore>,
    views: SharedViews,
    /// Held while a view is built, so that browsers that follow the same view wait for it.
    making: [Mutex<()>; MAKERS],
    pub(super) addresses: Addresses,
    pub(super) browsers: Browsers,
    _marked: Serving,
}

/// The most streams at once. A person has only a few tabs in a few browsers.
const MOST_STREAMS: usize = 100;
/// How long a form may take to arrive.
const PATIENCE: Duration = Duration::from_secs(20);
/// How many views can be built at once, if the hashes of their addresses differ.
const MAKERS: usize = 16;
/// Limits how often slow views are rebuilt: building a view takes at most one part in this many of a core.
const SHARE: u32 = 20;
const LONGEST_REST: Duration = Duration::from_secs(10);

impl<H: Host> Page<H> {
    pub(super) fn new(host: H, store: Store, addresses: Addresses, options: Options) -> Result<Self, String> {
        let marked = Serving::mark(store.dir(), &addresses.for_notifications()).map_err(|error| error.to_string())?;
        let kept = addresses.port.map_or("browsers".to_owned(), |port| format!("browsers-{port}"));
        let browsers = Browsers::new(store.dir().page().join(kept), options.token);
        let page = Self {
            host,
            dir: store.dir().clone(),
            read_only: options.read_only,
            changes: Changes::new(store),
            streams: Arc::new(Semaphore::new(MOST_STREAMS)),
            views: SharedViews::default(),
            making: Default::default(),
            addresses,
            browsers,
            _marked: marked,
        };
        match page.browsers.has_token() {
            true => page.host.show_address(&page.addresses.own),
            false => page.host.show_link(&page.link(), true),
        }
        Ok(page)
    }

    /// Marks that a person has a page open, until the result is dropped.
    pub(super) fn attend(&self) -> Option<Attending> {
        Attending::mark(&self.dir).ok()
    }

    pub(super) fn link(&self) -> String {
        format!("{}/login?link={}", self.addresses.own, self.browsers.new_link())
    }

    /// Whether this browser has logged in.
    pub(super) fn knows(&self, visitor: &Visitor) -> bool {
        visitor.cookie.as_deref().is_some_and(|cookie| self.browsers.contains(cookie))
    }

    /// Runs a person's decision without blocking other requests.
    pub(super) async fn decide<T: Send + 'static>(
        self: &Arc<Self>,
        visitor: &Visitor,
        work: impl FnOnce(&App<'_>, &H::Surroundings) -> Result<T, AppError> + Send + 'static,
    ) -> Result<T, Problem> {
        let (browser, connection) = (visitor.browser.clone(), visitor.connection);
        self.aside(move |page| page.host.decide(browser, connection, work)).await
    }

    async fn aside<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let page = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || work(&page)).await;
        done.unwrap_or_else(|error| Err(Problem { kind: ProblemKind::Failed, words: error.to_string() }))
    }

    /// Returns a view for a browser that follows it. All browsers that follow the view share it, even while it may not be
    /// rebuilt yet.
    pub(super) async fn followed(self: &Arc<Self>, of: &str) -> Result<Made, Problem> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(of);
        let _one_makes_it = self.making[hash as usize % MAKERS].lock().await;
        match self.views.get(of).filter(|made| Instant::now() < made.rests_until || !self.is_stale(made)) {
            Some(made) => Ok(made),
            None => self.view(of).await,
        }
    }

    /// Whether the content of a view has changed.
    pub(super) fn is_stale(&self, made: &Made) -> bool {
        made.is_stale(&self.changes.written(&made.view.follows), Timestamp::now())
    }

    /// Builds the current view. Time passes even if nothing is written.
    pub(super) async fn view(self: &Arc<Self>, of: &str) -> Result<Made, Problem> {
        // The new view probably shows the same outputs as before. It may lack output that agents print from now on.
        let before = self.views.get(of);
        let written = self.changes.written(before.iter().flat_map(|made| &made.view.follows));
        let unknown = || Problem { kind: ProblemKind::Unknown, words: "there is no such page".to_owned() };
        let target = Target::new(of, self.read_only).ok_or_else(unknown)?;
        let look = move |page: &Self| {
            let began = Instant::now();
            let view = page.host.look(|app, surroundings| views::view(app, surroundings, &target))?;
            Ok((view, began.elapsed()))
        };
        let (view, took) = self.aside(look).await?;
        let rests_until = Instant::now() + (took * SHARE).min(LONGEST_REST);
        let made = Made { view: Arc::new(view), written, rests_until };
        self.views.insert(of, &made);
        Ok(made)
    }
}

/// The response to a refused or failed request.
pub(super) fn refused(problem: &Problem) -> Response {
    let (status, title) = match problem.kind {
        ProblemKind::Unknown => (StatusCode::NOT_FOUND, "Not found"),
        ProblemKind::Refused => (StatusCode::CONFLICT, "Not done"),
        ProblemKind::Failed => (StatusCode::SERVICE_UNAVAILABLE, "Failed"),
    };
    let body = html! { pre #problem tabindex="0" { (escape::block(&problem.words)) } p { a href="/" { "Chains" } } };
    (status, layout::document(title, None, None, &body)).into_response()
}

/// Reads the fields of a form. Gives up if the form does not arrive in time.
pub(super) async fn fields(request: Request) -> Result<Vec<(String, String)>, Response> {
    match tokio::time::timeout(PATIENCE, Form::<Vec<(String, String)>>::from_request(request, &())).await {
        Ok(Ok(Form(fields))) => Ok(fields),
        Ok(Err(rejection)) => Err(rejection.into_response()),
        Err(_) => Err(StatusCode::REQUEST_TIMEOUT.into_response()),
    }
}

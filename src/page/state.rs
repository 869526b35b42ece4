//! What all requests share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::{Form, FromRequest, Request};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::html;
use tokio::sync::Semaphore;

use crate::app::App;
use crate::app::error::AppError;
use crate::core::steering::origin::FromPage;
use crate::core::text::escape;
use crate::page::guard::Guard;
use crate::page::views::{self, Section, Target, View, layout};
use crate::page::{Connection, Host, Options, Problem, ProblemKind};
use crate::runtime::activity::changes::Changes;
use crate::store::{Attending, Browsers, Serving, StateDir, Store};

/// Who makes a request.
#[derive(Clone, Debug)]
pub(super) struct Visitor {
    pub(super) connection: Connection,
    pub(super) is_of_agent: bool,
    pub(super) browser: FromPage,
    pub(super) cookie: Option<String>,
}

/// The server of the page.
pub(super) struct Page<H> {
    pub(super) host: H,
    dir: StateDir,
    pub(super) read_only: bool,
    pub(super) changes: Changes,
    /// How many more browsers can follow something.
    pub(super) streams: Arc<Semaphore>,
    /// The views that were sent to browsers, each as it was after a number of changes.
    views: Mutex<HashMap<String, (u64, Arc<View>)>>,
    pub(super) guard: Guard,
    pub(super) browsers: Browsers,
    address: String,
    _marked: Serving,
}

/// A person has a few tabs in a few browsers.
const MOST_STREAMS: usize = 100;
/// How long a form may take to arrive.
const PATIENCE: Duration = Duration::from_secs(20);
/// More views than these are not remembered.
const MOST_VIEWS: usize = 200;

/// The address for notifications: that by which other machines reach the page, if a person has named one. Empty: browsers do not
/// reach a Unix socket by themselves.
fn told_address(own: &str, port: Option<u16>, added: &[String]) -> String {
    match (added.first(), port) {
        // What speaks for this port itself has no TLS.
        (Some(name), Some(port)) if name.ends_with(&format!(":{port}")) => format!("http://{name}"),
        (Some(name), _) if name.starts_with("localhost") => format!("http://{name}"),
        (Some(name), _) => format!("https://{name}"),
        (None, Some(_)) => own.to_owned(),
        (None, None) => String::new(),
    }
}

impl<H: Host> Page<H> {
    /// `names`: those of the server, without the port; `port`: `None` for a Unix socket.
    pub(super) fn new(
        host: H,
        store: Store,
        address: String,
        names: &[String],
        port: Option<u16>,
        options: Options,
    ) -> Result<Self, String> {
        let told = told_address(&address, port, &options.allowed_hosts);
        let marked = Serving::mark(store.dir(), &told).map_err(|error| error.to_string())?;
        let kept = store.dir().page().join(port.map_or("browsers".to_owned(), |port| format!("browsers-{port}")));
        let Options { read_only, token, allowed_hosts, .. } = options;
        let page = Self {
            host,
            dir: store.dir().clone(),
            read_only,
            changes: Changes::new(store),
            streams: Arc::new(Semaphore::new(MOST_STREAMS)),
            views: Mutex::default(),
            guard: Guard::new(names, port, &allowed_hosts),
            browsers: Browsers::new(kept, token),
            address,
            _marked: marked,
        };
        if !page.browsers.has_token() {
            page.host.show_link(&page.link(), true);
        }
        Ok(page)
    }

    /// Marks that a person has a page open, until the result is dropped.
    pub(super) fn attend(&self) -> Option<Attending> {
        Attending::mark(&self.dir).ok()
    }

    pub(super) fn link(&self) -> String {
        format!("{}/login?link={}", self.address, self.browsers.new_link())
    }

    /// Whether this browser has logged in.
    pub(super) fn knows(&self, visitor: &Visitor) -> bool {
        visitor.cookie.as_deref().is_some_and(|cookie| self.browsers.contains(cookie))
    }

    /// Looks at the records without holding up other requests.
    pub(super) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        visitor: &Visitor,
        work: impl FnOnce(&App<'_>, &H::Surroundings) -> Result<T, AppError> + Send + 'static,
    ) -> Result<T, Problem> {
        let (page, browser, connection) = (Arc::clone(self), visitor.browser.clone(), visitor.connection);
        let done = tokio::task::spawn_blocking(move || page.host.run(browser, connection, work)).await;
        done.unwrap_or_else(|error| Err(Problem { kind: ProblemKind::Failed, words: error.to_string() }))
    }

    /// A view as it was after the last change. Browsers that follow the same view share it.
    pub(super) async fn followed(self: &Arc<Self>, visitor: &Visitor, of: &str) -> Result<Arc<View>, Problem> {
        let count = self.changes.count();
        let known = self.views.lock().unwrap_or_else(PoisonError::into_inner).get(of).cloned();
        match known {
            Some((known, view)) if known == count => Ok(view),
            _ => self.view(visitor, of).await,
        }
    }

    /// A view as it is now: time passes even if nothing is written.
    pub(super) async fn view(self: &Arc<Self>, visitor: &Visitor, of: &str) -> Result<Arc<View>, Problem> {
        let count = self.changes.count();
        let unknown = || Problem { kind: ProblemKind::Unknown, words: "there is no such page".to_owned() };
        let target = Target::new(of, self.read_only).ok_or_else(unknown)?;
        let view = self.run(visitor, move |app, surroundings| views::view(app, surroundings, &target)).await?;
        let view = Arc::new(view);
        let mut views = self.views.lock().unwrap_or_else(PoisonError::into_inner);
        if views.len() >= MOST_VIEWS {
            views.clear();
        }
        views.insert(of.to_owned(), (count, Arc::clone(&view)));
        Ok(view)
    }
}

/// Says why something was not done.
pub(super) fn refused(problem: &Problem) -> Response {
    let (status, title) = match problem.kind {
        ProblemKind::Unknown => (StatusCode::NOT_FOUND, "Not found"),
        ProblemKind::Refused => (StatusCode::CONFLICT, "Not done"),
        ProblemKind::Failed => (StatusCode::SERVICE_UNAVAILABLE, "Failed"),
    };
    let body = html! { pre #problem tabindex="0" { (escape::block(&problem.words)) } p { a href="/" { "Chains" } } };
    (status, layout::document(title, Section::Other, None, &body)).into_response()
}

/// The fields of a form. One that does not arrive in time is given up.
pub(super) async fn fields(request: Request) -> Result<Vec<(String, String)>, Response> {
    match tokio::time::timeout(PATIENCE, Form::<Vec<(String, String)>>::from_request(request, &())).await {
        Ok(Ok(Form(fields))) => Ok(fields),
        Ok(Err(rejection)) => Err(rejection.into_response()),
        Err(_) => Err(StatusCode::REQUEST_TIMEOUT.into_response()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_say_how_a_phone_reaches_the_page() {
        let told = |port, added: &[&str]| {
            let added: Vec<_> = added.iter().map(|name| (*name).to_owned()).collect();
            told_address("http://127.0.0.1:7878", port, &added)
        };
        assert_eq!(told(Some(7878), &[]), "http://127.0.0.1:7878");
        assert_eq!(told(Some(7878), &["box.example", "other"]), "https://box.example");
        assert_eq!(told(Some(7878), &["box.example:7878"]), "http://box.example:7878");
        assert_eq!(told(None, &["localhost:7878"]), "http://localhost:7878");
        assert_eq!(told(None, &[]), "");
    }
}

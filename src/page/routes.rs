//! Maps addresses to handlers. [`views`](super::views) handles the addresses of views.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Extension, Query, Request, State};
use axum::http::header::{CONTENT_TYPE, SET_COOKIE, USER_AGENT};
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use maud::{PreEscaped, html};

use crate::core::text::escape;
use crate::page::guard::{self, HEADERS};
use crate::page::state::{Page, Visitor, fields, refused};
use crate::page::views::layout;
use crate::page::{Host, actions, live};
use crate::store::Browsers;

/// The largest form that is accepted, in bytes.
const LARGEST: usize = 2 << 20;

const ASSETS: [(&str, &str, &str); 4] = [
    ("/page.js", "text/javascript; charset=utf-8", include_str!("assets/page.js")),
    ("/page.css", "text/css; charset=utf-8", include_str!("assets/page.css")),
    ("/icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
    ("/manifest.webmanifest", "application/manifest+json", include_str!("assets/manifest.webmanifest")),
];

/// All routes. Every request passes through [`guarded`].
pub(super) fn router<H: Host>(page: Arc<Page<H>>) -> Router {
    let mut router = Router::new()
        .route("/login", get(by_link::<H>).post(by_token::<H>))
        .route("/logout", post(log_out::<H>))
        .route("/live", get(live::stream::<H>))
        .route("/start", get(show::<H>).post(actions::act::<H>))
        .route("/question/{id}/answer", post(actions::act::<H>))
        .route("/agent/{id}/{action}", post(actions::act::<H>))
        .route("/chain/{id}/{action}", post(actions::act::<H>))
        .fallback(get(show::<H>));
    for (path, kind, text) in ASSETS {
        router = router.route(path, get(move || async move { ([(CONTENT_TYPE, kind)], text) }));
    }
    let guard = middleware::from_fn_with_state(Arc::clone(&page), guarded::<H>);
    router.layer(DefaultBodyLimit::max(LARGEST)).layer(guard).with_state(page)
}

/// Passes on requests that a person's browser makes for this page, and adds the security headers to every response.
async fn guarded<H: Host>(
    State(page): State<Arc<Page<H>>>,
    Extension(mut visitor): Extension<Visitor>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    let checked = if visitor.is_of_agent {
        Err((StatusCode::FORBIDDEN, "agents cannot use the page"))
    } else {
        guard::check(&page.addresses, &parts)
    };
    visitor.cookie = guard::cookie_in(&page.addresses, &parts.headers).map(str::to_owned);
    visitor.browser.browser = parts.headers.get(USER_AGENT).and_then(|name| name.to_str().ok()).map(escape::shortened);
    let path = parts.uri.path();
    let is_open = path == "/login" || ASSETS.iter().any(|(asset, ..)| *asset == path);
    let mut response = match checked {
        Err((status, why)) => (status, why).into_response(),
        Ok(()) if !is_open && !page.knows(&visitor) => logged_out(&page, StatusCode::UNAUTHORIZED),
        Ok(()) => {
            let mut request = Request::from_parts(parts, body);
            request.extensions_mut().insert(visitor);
            next.run(request).await
        }
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

fn logged_out<H>(page: &Page<H>, status: StatusCode) -> Response {
    let body = if page.browsers.has_token() {
        html! {
            form.wide method="post" action="/login" {
                label { "Token" input type="password" name="token" autocomplete="current-password" required; }
                button { "Log in" }
            }
        }
    } else {
        html! { p { "Open the link that " code { "agent-cli serve" } " has printed. Each link works once; then it prints another one." } }
    };
    (status, layout::plain("Log in", &body)).into_response()
}

async fn show<H: Host>(State(page): State<Arc<Page<H>>>, uri: Uri) -> Response {
    let of = uri.path_and_query().map_or("/", |of| of.as_str());
    match page.view(of).await {
        Ok(made) => {
            let view = made.view;
            layout::document(&view.title, Some(of), Some(view.digest()), &PreEscaped(view.body())).into_response()
        }
        Err(problem) => refused(&problem),
    }
}

async fn by_link<H: Host>(
    State(page): State<Arc<Page<H>>>,
    Extension(visitor): Extension<Visitor>,
    Query(query): Query<HashMap<String, String>>,
) -> Response {
    let Some(link) = query.get("link") else { return logged_out(&page, StatusCode::OK) };
    if page.browsers.has_token() {
        return logged_out(&page, StatusCode::FORBIDDEN);
    }
    match page.browsers.by_link(link) {
        Some(cookie) => {
            page.host.show_link(&page.link(), false);
            logged_in(&page, &cookie)
        }
        None if page.knows(&visitor) => onwards(),
        None => logged_out(&page, StatusCode::FORBIDDEN),
    }
}

async fn by_token<H: Host>(State(page): State<Arc<Page<H>>>, request: Request) -> Response {
    let fields = match fields(request).await {
        Ok(fields) => fields,
        Err(response) => return response,
    };
    let token = fields.iter().find(|(name, _)| name == "token").map(|(_, token)| token.as_str());
    match token.and_then(|token| page.browsers.by_token(token)) {
        Some(cookie) => logged_in(&page, &cookie),
        None => logged_out(&page, StatusCode::FORBIDDEN),
    }
}

fn logged_in<H>(page: &Page<H>, cookie: &str) -> Response {
    let seconds = Browsers::LASTS.as_secs().unsigned_abs();
    ([(SET_COOKIE, guard::set_cookie(&page.addresses, cookie, seconds))], onwards()).into_response()
}

/// Leads to the first page. A redirect would still count as coming from the program that opened the link, so the browser
/// would not send the cookie.
fn onwards() -> Response {
    let body = html! {
        meta http-equiv="refresh" content="0;url=/";
        p { a href="/" { "Continue" } }
    };
    layout::plain("Logged in", &body).into_response()
}

async fn log_out<H: Host>(State(page): State<Arc<Page<H>>>, Extension(visitor): Extension<Visitor>) -> Response {
    if let Some(cookie) = &visitor.cookie {
        page.browsers.end(cookie);
    }
    ([(SET_COOKIE, guard::set_cookie(&page.addresses, "", 0))], logged_out(&page, StatusCode::OK)).into_response()
}

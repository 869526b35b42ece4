//! Which requests are looked at: those that a person's browser makes on this page's behalf.
//!
//! A page of another server can make a browser send requests here, with the cookie if that server has the same host name: cookies
//! ignore ports. Each rule here would be enough against most of them; none is left out because another one exists.

use axum::http::header::{COOKIE, HOST, HeaderName, HeaderValue, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};

/// The names of this server, and who it lets in.
#[derive(Debug)]
pub(super) struct Guard {
    /// Host names with ports, in lower case: `127.0.0.1:7777`.
    hosts: Vec<String>,
    /// The names that a person has added: a proxy may speak TLS for them.
    added: Vec<String>,
    pub(super) cookie: String,
}

/// Why a request is not looked at.
pub(super) type Refused = (StatusCode, &'static str);

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// What every response says about how it may be used.
pub(super) const HEADERS: [(&str, &str); 7] = [
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; manifest-src 'self'; \
         form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    ),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("cache-control", "no-store"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=()"),
];

impl Guard {
    /// `own`: the names without ports. `port`: `None` for a Unix socket.
    pub(super) fn new(own: &[String], port: Option<u16>, added: &[String]) -> Self {
        let added: Vec<String> = added.iter().map(|name| name.to_ascii_lowercase()).collect();
        let named = |name: &String| match port {
            // Browsers leave out the usual port.
            None | Some(80) => vec![name.clone()],
            Some(port) => vec![format!("{name}:{port}")],
        };
        let hosts = own.iter().flat_map(named).chain(added.iter().cloned()).collect();
        let cookie = port.map_or("agent-cli".to_owned(), |port| format!("agent-cli-{port}"));
        Self { hosts, added, cookie }
    }

    /// Checks a request for everything but whether its browser has logged in.
    pub(super) fn check(&self, request: &Parts) -> Result<(), Refused> {
        let host = self.host(request).ok_or((StatusCode::MISDIRECTED_REQUEST, "this server has another name"))?;
        let is_safe = match request.method {
            Method::GET | Method::HEAD => true,
            Method::POST => false,
            _ => return Err((StatusCode::METHOD_NOT_ALLOWED, "only GET and POST are allowed")),
        };
        let other_site = Err((StatusCode::FORBIDDEN, "another site's page has sent this request"));
        let origin = one(&request.headers, &ORIGIN)?;
        let is_own = |origin: &str| self.is_origin(origin, &host);
        let is_navigation = || one(&request.headers, &MODE).is_ok_and(|mode| mode == Some("navigate"));
        match (is_safe, one(&request.headers, &SITE)?) {
            // "none": a person has typed the address, or followed a link of a program. Without the header, the browser is old.
            (_, Some("same-origin")) | (true, Some("none") | None) => {}
            // A link on another site: the browser sends no cookie with it.
            (true, Some(_)) if is_navigation() && !is_stream(request) => {}
            (_, Some(_)) => return other_site,
            (false, None) if origin.is_some() => {}
            (false, None) => return Err((StatusCode::FORBIDDEN, "the browser does not say which page has sent this")),
        }
        match origin {
            // A page from a file, such as that with which a browser is opened, has this one.
            Some("null") if is_safe && is_navigation() => Ok(()),
            Some(origin) if !is_own(origin) => other_site,
            _ => Ok(()),
        }
    }

    /// The name under which the browser knows this server.
    fn host(&self, request: &Parts) -> Option<String> {
        let named = one(&request.headers, &HOST).ok()??.to_ascii_lowercase();
        let in_line = request.uri.authority().map(|authority| authority.as_str().to_ascii_lowercase());
        (self.hosts.contains(&named) && in_line.is_none_or(|in_line| in_line == named)).then_some(named)
    }

    fn is_origin(&self, origin: &str, host: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        let is_added = || self.added.iter().any(|added| added == host);
        origin.strip_prefix("http://") == Some(host) || origin.strip_prefix("https://") == Some(host) && is_added()
    }

    /// The value of this server's cookie.
    pub(super) fn cookie_in<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let all = headers.get_all(COOKIE).into_iter().filter_map(|line| line.to_str().ok());
        let mut pairs = all.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(name, _)| *name == self.cookie).map(|(_, value)| value)
    }

    /// The header that gives a browser its cookie, or takes it away.
    pub(super) fn set_cookie(&self, value: &str, seconds: u64) -> HeaderValue {
        let cookie = format!("{}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}", self.cookie);
        HeaderValue::try_from(cookie).unwrap_or_else(|_| HeaderValue::from_static(""))
    }
}

fn is_stream(request: &Parts) -> bool {
    request.uri.path() == "/live"
}

/// The value of a header that may occur once.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Refused> {
    let bad = (StatusCode::BAD_REQUEST, "a header is not understood");
    let mut values = headers.get_all(name).into_iter();
    let first = values.next().map(|value| value.to_str().map_err(|_| bad)).transpose()?;
    if values.next().is_some() { Err(bad) } else { Ok(first) }
}

/// Whether a browser could call a server by this name: a host name or address, perhaps with a port.
pub(crate) fn is_name_of_host(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-.:[]".contains(c);
    !name.is_empty() && name.chars().all(is_plain) && name.parse::<axum::http::uri::Authority>().is_ok()
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn checked(method: &str, path: &str, headers: &[(&str, &str)]) -> Result<(), u16> {
        let guard = Guard::new(&["127.0.0.1", "localhost"].map(str::to_owned), Some(7777), &["box.example".to_owned()]);
        let request = headers
            .iter()
            .fold(Request::builder().method(method).uri(path), |request, (name, value)| request.header(*name, *value));
        guard.check(&request.body(()).unwrap().into_parts().0).map_err(|(status, _)| status.as_u16())
    }

    const OWN: (&str, &str) = ("host", "127.0.0.1:7777");

    #[test]
    fn only_exact_names_of_this_server_count() {
        for host in ["127.0.0.1:7777", "LOCALHOST:7777", "box.example"] {
            assert_eq!(checked("GET", "/", &[("host", host)]), Ok(()), "{host}");
        }
        for host in [
            "127.0.0.1", "localhost:7778", "localhost.:7777", "localhost:7777.evil.test", "evil.test:7777",
            "box.example:7777", "127.0.0.1:7777,evil.test", "evil.test@127.0.0.1:7777", "0.0.0.0:7777", "[::1]:7777",
            "",
        ] {
            assert_eq!(checked("GET", "/", &[("host", host)]), Err(421), "{host}");
        }
        assert_eq!(checked("GET", "/", &[]), Err(421));
        assert_eq!(checked("GET", "/", &[OWN, OWN]), Err(421), "two names");
        assert_eq!(checked("GET", "http://evil.test/", &[OWN]), Err(421), "another name in the request line");
    }

    #[test]
    fn what_changes_something_comes_from_this_page() {
        let site = |site| ("sec-fetch-site", site);
        let origin = |origin| ("origin", origin);
        let own = origin("http://127.0.0.1:7777");
        assert_eq!(checked("POST", "/start", &[OWN, site("same-origin")]), Ok(()));
        assert_eq!(checked("POST", "/start", &[OWN, site("same-origin"), own]), Ok(()));
        assert_eq!(checked("POST", "/start", &[OWN, own]), Ok(()), "an old browser");
        let proxied = [("host", "box.example"), origin("https://box.example")];
        assert_eq!(checked("POST", "/start", &proxied), Ok(()), "a proxy that speaks TLS");
        for hostile in [
            &[OWN][..],
            &[OWN, site("none")],
            &[OWN, site("same-site")],
            &[OWN, site("cross-site")],
            &[OWN, site("same-site"), own],
            &[OWN, origin("null")],
            &[OWN, origin("http://127.0.0.1:7778")],
            &[OWN, origin("https://127.0.0.1:7777")],
            &[OWN, origin("http://127.0.0.1:7777.evil.test")],
            &[OWN, origin("http://localhost:7777")],
            &[OWN, site("same-origin"), origin("http://evil.test")],
        ] {
            assert_eq!(checked("POST", "/start", hostile), Err(403), "{hostile:?}");
        }
        assert_eq!(checked("POST", "/start", &[OWN, site("same-origin"), site("cross-site")]), Err(400));
        assert_eq!(checked("DELETE", "/start", &[OWN, site("same-origin")]), Err(405));
    }

    #[test]
    fn other_sites_may_link_here_and_nothing_else() {
        let cross = ("sec-fetch-site", "cross-site");
        let navigates = ("sec-fetch-mode", "navigate");
        assert_eq!(checked("GET", "/inbox", &[OWN, cross, navigates]), Ok(()));
        assert_eq!(checked("GET", "/inbox", &[OWN, cross, ("sec-fetch-mode", "no-cors")]), Err(403));
        assert_eq!(checked("GET", "/live", &[OWN, cross, navigates]), Err(403));
        assert_eq!(checked("GET", "/live", &[OWN, ("sec-fetch-site", "same-site")]), Err(403));
        assert_eq!(checked("GET", "/live", &[OWN, ("origin", "http://127.0.0.1:1")]), Err(403));
        assert_eq!(checked("GET", "/live", &[OWN, ("sec-fetch-site", "same-origin")]), Ok(()));
    }

    #[test]
    fn cookies_of_other_servers_are_not_this_one() {
        let guard = Guard::new(&["localhost".to_owned()], Some(7777), &[]);
        let found = |line: &str| {
            let headers = HeaderMap::from_iter([(COOKIE, HeaderValue::from_str(line).unwrap())]);
            guard.cookie_in(&headers).map(str::to_owned)
        };
        assert_eq!(found("agent-cli-7778=x; agent-cli-7777=y; agent-cli=z"), Some("y".into()));
        assert_eq!(found("agent-cli-77770=x; xagent-cli-7777=y"), None);
    }

    #[test]
    fn names_of_hosts_are_plain() {
        for (name, is_one) in
            [("box.example", true), ("box.example:8443", true), ("[::1]:80", true), ("http://x", false), ("a b", false)]
        {
            assert_eq!(is_name_of_host(name), is_one, "{name}");
        }
    }
}

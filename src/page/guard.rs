//! Checks the headers of requests, and sets the security headers of responses.

use axum::http::header::{COOKIE, HOST, HeaderName, HeaderValue, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode};

use crate::app::fronts::page_addresses::Addresses;
use crate::app::fronts::page_guard::{self, RefusedSender, Sender};

/// The response to a refused request.
pub(super) type Refused = (StatusCode, &'static str);

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// The security headers of every response.
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

/// Checks a request, except whether its browser has logged in.
pub(super) fn check(own: &Addresses, request: &Parts) -> Result<(), Refused> {
    let reads = match request.method {
        Method::GET | Method::HEAD => true,
        Method::POST => false,
        _ => return Err((StatusCode::METHOD_NOT_ALLOWED, "only GET and POST are allowed")),
    };
    let header = |name| one(&request.headers, name);
    let sender = Sender {
        reads,
        follows: request.uri.path() == "/live",
        host: header(&HOST).ok().flatten(),
        in_line: request.uri.authority().map(http::uri::Authority::as_str),
        origin: header(&ORIGIN)?,
        site: header(&SITE)?,
        mode: header(&MODE)?,
    };
    page_guard::check(own, &sender).map_err(|refused| match refused {
        RefusedSender::OtherName => (StatusCode::MISDIRECTED_REQUEST, refused.words()),
        RefusedSender::OtherSite | RefusedSender::UnknownSite => (StatusCode::FORBIDDEN, refused.words()),
    })
}

/// The value of this server's cookie.
pub(super) fn cookie_in<'a>(own: &Addresses, headers: &'a HeaderMap) -> Option<&'a str> {
    let all = headers.get_all(COOKIE).into_iter().filter_map(|line| line.to_str().ok());
    let mut pairs = all.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == own.cookie()).map(|(_, value)| value)
}

/// The header that sets or deletes a browser's cookie.
pub(super) fn set_cookie(own: &Addresses, value: &str, seconds: u64) -> HeaderValue {
    let cookie = format!("{}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}", own.cookie());
    HeaderValue::try_from(cookie).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// The value of a header that may occur only once.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Refused> {
    let bad = (StatusCode::BAD_REQUEST, "a header is not understood");
    let mut values = headers.get_all(name).into_iter();
    let first = values.next().map(|value| value.to_str().map_err(|_| bad)).transpose()?;
    if values.next().is_some() { Err(bad) } else { Ok(first) }
}

/// Whether a browser could call a server by this name: a host name or address, perhaps with a port.
pub(crate) fn is_name_of_host(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-.:[]".contains(c);
    !name.is_empty() && name.chars().all(is_plain) && name.parse::<http::uri::Authority>().is_ok()
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;

    fn checked(method: &str, path: &str, headers: &[(&str, &str)]) -> Result<(), u16> {
        let own = Addresses::new(Some("127.0.0.1:7777".parse().unwrap()), &["box.example".to_owned()]);
        let request = headers
            .iter()
            .fold(Request::builder().method(method).uri(path), |request, (name, value)| request.header(*name, *value));
        check(&own, &request.body(()).unwrap().into_parts().0).map_err(|(status, _)| status.as_u16())
    }

    const OWN: (&str, &str) = ("host", "127.0.0.1:7777");

    #[test]
    fn only_exact_names_of_this_server_count() {
        for host in ["127.0.0.1:7777", "LOCALHOST:7777", "box.example"] {
            assert_eq!(checked("GET", "/", &[("host", host)]), Ok(()), "{host}");
        }
        for host in [
            "127.0.0.1", "localhost:7778", "localhost.:7777", "localhost:7777.evil.test", "evil.test:7777",
            "box.example:7777", "127.0.0.1:7777,evil.test", "evil.test@127.0.0.1:7777", "0.0.0.0:7777", "[::1]:7778",
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
        let own = Addresses::new(Some("127.0.0.1:7777".parse().unwrap()), &[]);
        let found = |line: &str| {
            let headers = HeaderMap::from_iter([(COOKIE, HeaderValue::from_str(line).unwrap())]);
            cookie_in(&own, &headers).map(str::to_owned)
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

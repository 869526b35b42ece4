//! The names of the page's server, and the addresses of its clients.

use std::net::SocketAddr;

/// The names of a server.
#[derive(Debug)]
pub(crate) struct Addresses {
    /// The address for a browser on this machine.
    pub(crate) own: String,
    /// Host names with ports, in lower case: `127.0.0.1:7777`.
    hosts: Vec<String>,
    /// The names that a person has added. A proxy may speak TLS for them.
    added: Vec<String>,
    /// `None` if the server listens on a Unix socket.
    pub(crate) port: Option<u16>,
}

impl Addresses {
    /// `listens` is `None` for a Unix socket.
    pub(crate) fn new(listens: Option<SocketAddr>, added: &[String]) -> Self {
        let port = listens.map(|own| own.port());
        let added: Vec<String> = added.iter().map(|name| name.to_ascii_lowercase()).collect();
        let names = match listens {
            Some(own) if own.ip().is_loopback() || own.ip().is_unspecified() => {
                vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "[::1]".to_owned()]
            }
            Some(SocketAddr::V6(own)) => vec![format!("[{}]", own.ip())],
            Some(own) => vec![own.ip().to_string()],
            None => vec!["localhost".to_owned()],
        };
        let named = |name: String| match port {
            // Browsers omit the default port.
            None | Some(80) => name,
            Some(port) => format!("{name}:{port}"),
        };
        let hosts = names.into_iter().map(named).chain(added.iter().cloned()).collect();
        let own = match listens {
            Some(own) if own.ip().is_unspecified() => format!("http://localhost:{}", own.port()),
            Some(own) => format!("http://{own}"),
            // Port forwarding leads to it.
            None => added.first().map_or("http://localhost".to_owned(), |name| reached_at(name, None)),
        };
        Self { own, hosts, added, port }
    }

    /// Whether the server has this name.
    pub(crate) fn are_of(&self, host: &str) -> bool {
        self.hosts.iter().any(|own| own == host)
    }

    /// Whether `origin` is a page of this server, for a browser that calls the server `host`.
    pub(crate) fn is_origin(&self, origin: &str, host: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        let is_added = || self.added.iter().any(|added| added == host);
        origin.strip_prefix("http://") == Some(host) || origin.strip_prefix("https://") == Some(host) && is_added()
    }

    /// The address in notifications: the one at which other machines reach the page, if a person has named it. Empty for a
    /// Unix socket, which browsers cannot reach directly.
    pub(crate) fn for_notifications(&self) -> String {
        match (self.added.first(), self.port) {
            (Some(name), port) => reached_at(name, port),
            (None, Some(_)) => self.own.clone(),
            (None, None) => String::new(),
        }
    }

    /// The name of the server's cookie. Servers on other ports of this machine get the cookie, too.
    pub(crate) fn cookie(&self) -> String {
        self.port.map_or("agent-cli".to_owned(), |port| format!("agent-cli-{port}"))
    }
}

/// The address of a server that listens on `port`, by a name that a person has added.
fn reached_at(name: &str, port: Option<u16>) -> String {
    // A name with this port leads directly to this server, which has no TLS.
    let is_direct = port.is_some_and(|port| name.ends_with(&format!(":{port}")));
    let scheme = if is_direct || name.starts_with("localhost") { "http" } else { "https" };
    format!("{scheme}://{name}")
}

/// A connection, with everything known about the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Connection {
    Tcp {
        peer: SocketAddr,
        own: SocketAddr,
    },
    /// Over a Unix socket, from this process.
    Unix(Option<i32>),
}

impl Connection {
    /// The address of the other end.
    pub(crate) fn address(self) -> String {
        match self {
            Self::Tcp { peer, .. } => peer.ip().to_canonical().to_string(),
            Self::Unix(_) => "a Unix socket".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(listens: Option<&str>, added: &[&str]) -> Addresses {
        let added: Vec<_> = added.iter().map(|name| (*name).to_owned()).collect();
        Addresses::new(listens.map(|own| own.parse().unwrap()), &added)
    }

    #[test]
    fn notifications_say_how_a_phone_reaches_the_page() {
        let own = Some("127.0.0.1:7878");
        let told = |listens, added: &[&str]| addresses(listens, added).for_notifications();
        assert_eq!(told(own, &[]), "http://127.0.0.1:7878");
        assert_eq!(told(own, &["box.example", "other"]), "https://box.example");
        assert_eq!(told(own, &["box.example:7878"]), "http://box.example:7878");
        assert_eq!(told(None, &["localhost:7878"]), "http://localhost:7878");
        assert_eq!(told(None, &[]), "");
    }

    #[test]
    fn a_server_is_found_where_it_listens() {
        let found = |listens| {
            let found = addresses(listens, &[]);
            (found.own, found.hosts)
        };
        let any = ("http://localhost:1".into(), vec!["localhost:1".into(), "127.0.0.1:1".into(), "[::1]:1".into()]);
        assert_eq!(found(Some("0.0.0.0:1")), any);
        assert_eq!(found(Some("[2001:db8::1]:2")), ("http://[2001:db8::1]:2".into(), vec!["[2001:db8::1]:2".into()]));
        assert_eq!(found(Some("192.0.2.1:80")), ("http://192.0.2.1:80".into(), vec!["192.0.2.1".into()]));
        assert_eq!(found(None), ("http://localhost".into(), vec!["localhost".into()]));
        assert_eq!(addresses(None, &["localhost:7878"]).own, "http://localhost:7878", "for a forwarded port");
        assert_eq!(addresses(None, &["box.example"]).own, "https://box.example", "for a proxy");
    }
}

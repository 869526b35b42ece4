//! Decides which requests to accept: only requests that a person's browser makes for this page.
//!
//! A page of another server can make a browser send requests here. They carry the cookie if that server has the same host
//! name, because cookies ignore ports. Almost every rule here stops most of these requests on its own. The rules overlap on
//! purpose.

use crate::app::fronts::page_addresses::Addresses;

/// The parts of a request that identify its sender.
#[derive(Debug)]
pub(crate) struct Sender<'a> {
    /// Whether the request only reads.
    pub(crate) reads: bool,
    /// Whether the request follows changes.
    pub(crate) follows: bool,
    /// The server's name in the Host header.
    pub(crate) host: Option<&'a str>,
    /// The server's name in the request line, if it is there.
    pub(crate) in_line: Option<&'a str>,
    /// The page that made the request (Origin), and how its site relates to this server (Sec-Fetch-Site).
    pub(crate) origin: Option<&'a str>,
    pub(crate) site: Option<&'a str>,
    /// How the request was made (Sec-Fetch-Mode): `navigate` if a person follows a link.
    pub(crate) mode: Option<&'a str>,
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusedSender {
    OtherName,
    OtherSite,
    UnknownSite,
}

impl RefusedSender {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::OtherName => "this server has another name",
            Self::OtherSite => "another site's page has sent this request",
            Self::UnknownSite => "the browser does not say which page has sent this",
        }
    }
}

/// Checks the request, except whether the browser has logged in.
pub(crate) fn check(own: &Addresses, sender: &Sender<'_>) -> Result<(), RefusedSender> {
    let Sender { reads, follows, host, in_line, origin, site, mode } = *sender;
    let host = host.ok_or(RefusedSender::OtherName)?.to_ascii_lowercase();
    if !own.are_of(&host) || in_line.is_some_and(|in_line| !in_line.eq_ignore_ascii_case(&host)) {
        return Err(RefusedSender::OtherName);
    }
    let is_navigation = mode == Some("navigate");
    match (reads, site) {
        // "none": a person typed the address, or followed a link from a program. Old browsers do not send the header.
        (_, Some("same-origin")) | (true, Some("none") | None) => {}
        // A link on another site. The browser sends no cookie with it.
        (true, Some(_)) if is_navigation && !follows => {}
        (_, Some(_)) => return Err(RefusedSender::OtherSite),
        (false, None) if origin.is_some() => {}
        (false, None) => return Err(RefusedSender::UnknownSite),
    }
    match origin {
        // The origin of a local file, such as the file that opens the browser.
        Some("null") if reads && is_navigation => Ok(()),
        Some(origin) if !own.is_origin(origin, &host) => Err(RefusedSender::OtherSite),
        _ => Ok(()),
    }
}

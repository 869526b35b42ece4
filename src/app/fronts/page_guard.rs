//! Which requests count: those that a person's browser makes on this page's behalf.
//!
//! A page of another server can make a browser send requests here, with the cookie if that server has the same host name: cookies
//! ignore ports. Each rule here would be enough against most of them; none is left out because another one exists.

use crate::app::fronts::page_addresses::Addresses;

/// A request, as far as it says who has made it.
#[derive(Debug)]
pub(crate) struct Sender<'a> {
    /// Whether it only reads.
    pub(crate) reads: bool,
    /// Whether it follows changes.
    pub(crate) follows: bool,
    /// The name of the server, as the browser knows it.
    pub(crate) host: Option<&'a str>,
    /// The same in the first line, if it is there.
    pub(crate) in_line: Option<&'a str>,
    /// The page that has made it, and which site that belongs to.
    pub(crate) origin: Option<&'a str>,
    pub(crate) site: Option<&'a str>,
    /// How it was made: `navigate` if a person follows a link.
    pub(crate) mode: Option<&'a str>,
}

/// Why a request does not count.
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

/// Checks everything but whether the browser has logged in.
pub(crate) fn check(own: &Addresses, sender: &Sender<'_>) -> Result<(), RefusedSender> {
    let Sender { reads, follows, host, in_line, origin, site, mode } = *sender;
    let host = host.ok_or(RefusedSender::OtherName)?.to_ascii_lowercase();
    if !own.are_of(&host) || in_line.is_some_and(|in_line| !in_line.eq_ignore_ascii_case(&host)) {
        return Err(RefusedSender::OtherName);
    }
    let is_navigation = mode == Some("navigate");
    match (reads, site) {
        // "none": a person has typed the address, or followed a link of a program. Without the header, the browser is old.
        (_, Some("same-origin")) | (true, Some("none") | None) => {}
        // A link on another site: the browser sends no cookie with it.
        (true, Some(_)) if is_navigation && !follows => {}
        (_, Some(_)) => return Err(RefusedSender::OtherSite),
        (false, None) if origin.is_some() => {}
        (false, None) => return Err(RefusedSender::UnknownSite),
    }
    match origin {
        // A page from a file, such as that with which a browser is opened, has this one.
        Some("null") if reads && is_navigation => Ok(()),
        Some(origin) if !own.is_origin(origin, &host) => Err(RefusedSender::OtherSite),
        _ => Ok(()),
    }
}

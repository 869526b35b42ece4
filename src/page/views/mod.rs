//! The views that browsers show.

mod agent;
mod chain;
mod chains;
mod conversation;
mod history;
mod inbox;
pub(super) mod layout;
mod start;
mod statistics;
mod timeline;

use std::collections::HashMap;

use axum::extract::Query;
use axum::http::Uri;

use crate::app::App;
use crate::app::error::{AppError, Refusal};
use crate::app::fronts::live_view::LiveView;
use crate::app::spawn::in_background::Surroundings;
use crate::core::chain::check_schedule::TICK;
use crate::core::id::FrameId;

/// The address of a view, with its query.
#[derive(Debug)]
pub(super) struct Target {
    path: Vec<String>,
    query: HashMap<String, String>,
    pub(super) read_only: bool,
}

impl Target {
    /// `None` if no view has such an address.
    pub(super) fn new(of: &str, read_only: bool) -> Option<Self> {
        let uri: Uri = of.parse().ok().filter(|uri: &Uri| uri.authority().is_none() && of.starts_with('/'))?;
        let Query(query) = Query::try_from_uri(&uri).ok()?;
        let path = uri.path().split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        Some(Self { path, query, read_only })
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.query.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    fn number(&self, name: &str) -> usize {
        self.value(name).and_then(|value| value.parse().ok()).unwrap_or(0)
    }
}

/// Builds the view for an address.
pub(super) fn view(app: &App<'_>, surroundings: &impl Surroundings, target: &Target) -> Result<LiveView, AppError> {
    let path: Vec<&str> = target.path.iter().map(String::as_str).collect();
    let view = match path.as_slice() {
        [] => chains::view(app, target),
        ["inbox"] => inbox::view(app, target),
        ["question", id] => inbox::question(app, target, id),
        ["history"] => history::view(app, target),
        ["statistics"] => statistics::view(app, target),
        ["start"] => Ok(start::view(target)),
        ["chain", id] => chain::view(app, target, frame(app, id)?),
        ["agent", id] => agent::view(app, surroundings, target, frame(app, id)?),
        _ => Err(Refusal::unknown("there is no such page").into()),
    }?;
    Ok(view.changes_at(app.now.checked_add(TICK)))
}

/// Finds the agent with exactly this id. Links contain full ids.
fn frame(app: &App<'_>, id: &str) -> Result<FrameId, AppError> {
    let unknown = || Refusal::unknown("there is no such agent; it may have been removed");
    let id: FrameId = id.parse().map_err(|_| unknown())?;
    app.store.frame(id)?.map(|frame| frame.id).ok_or_else(|| unknown().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_path_on_this_server() {
        for of in ["http://evil.test/", "//evil.test/", "inbox", "", "/\u{0}", "*"] {
            assert!(Target::new(of, false).is_none_or(|target| target.path != ["inbox"]), "{of}");
        }
        let target = Target::new("/chain/x?q=a%20b&page=2", false).unwrap();
        assert_eq!(
            (target.path.join(" "), target.value("q"), target.number("page")),
            ("chain x".into(), Some("a b"), 2)
        );
    }
}

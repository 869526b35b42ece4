//! What browsers see.

mod agent;
mod chain;
mod chains;
mod conversation;
mod history;
mod inbox;
pub(super) mod layout;
mod statistics;
mod timeline;

use std::collections::HashMap;
use std::path::PathBuf;

use axum::extract::Query;
use axum::http::Uri;
use maud::{Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use crate::app::App;
use crate::app::error::{AppError, Refusal};
use crate::app::spawn::in_background::Surroundings;
use crate::core::id::FrameId;

/// A view: parts that stay as they are, and live ones.
pub(super) struct View {
    pub(super) title: String,
    pub(super) section: Section,
    parts: Vec<Part>,
    /// The outputs that the live parts show something of.
    pub(super) follows: Vec<PathBuf>,
}

enum Part {
    Still(Markup),
    Live(Block),
}

/// The element of rows that are only ever added.
const LOG: &str = "ol";

/// An element that is sent again when something in it changes.
struct Block {
    id: &'static str,
    tag: &'static str,
    /// Elements with their ids.
    rows: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Chains,
    Inbox,
    History,
    Statistics,
    Start,
    Other,
}

/// A change of what a browser shows.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Update {
    /// The element with this id.
    Replace(String, String),
    /// New children of the element with this id.
    Append(String, String),
}

/// What a browser asks for.
#[derive(Debug)]
pub(super) struct Target {
    path: Vec<String>,
    query: HashMap<String, String>,
    pub(super) read_only: bool,
}

impl Target {
    /// `None`: no view has such an address.
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

impl View {
    fn new(title: impl Into<String>, section: Section) -> Self {
        Self { title: title.into(), section, parts: Vec::new(), follows: Vec::new() }
    }

    fn still(mut self, part: Markup) -> Self {
        self.parts.push(Part::Still(part));
        self
    }

    fn live(mut self, id: &'static str, tag: &'static str, rows: Vec<(String, Markup)>) -> Self {
        let rows = rows.into_iter().map(|(id, row)| (id, row.into_string())).collect();
        self.parts.push(Part::Live(Block { id, tag, rows }));
        self
    }

    /// A live part with a single row.
    fn live_row(self, id: &'static str, row: Markup) -> Self {
        self.live(id, "div", vec![(format!("{id}-row"), row)])
    }

    pub(super) fn body(&self) -> Markup {
        html! {
            @for part in &self.parts {
                @match part { Part::Still(part) => (part), Part::Live(block) => (PreEscaped(block.html())) }
            }
        }
    }

    fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.parts.iter().filter_map(|part| match part {
            Part::Live(block) => Some(block),
            Part::Still(_) => None,
        })
    }

    /// Identifies everything live in it: the same after a restart of the server.
    pub(super) fn digest(&self) -> String {
        let all = self.blocks().fold(Sha256::new(), |all, block| all.chain_update(block.html()));
        all.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// What has changed since `before`; `None`: it is not known what the browser shows.
    pub(super) fn updates(&self, before: Option<&Self>) -> Vec<Update> {
        let known = |block: &Block| before?.blocks().find(|other| other.id == block.id);
        self.blocks().flat_map(|block| block.updates(known(block))).collect()
    }
}

impl Block {
    fn html(&self) -> String {
        let (tag, id) = (self.tag, self.id);
        let rows: String = self.rows.iter().map(|(_, row)| row.as_str()).collect();
        format!("<{tag} id=\"{id}\">{rows}</{tag}>")
    }

    fn updates(&self, before: Option<&Self>) -> Vec<Update> {
        let whole = || vec![Update::Replace(self.id.to_owned(), self.html())];
        let Some(before) = before else { return whole() };
        if before.rows.is_empty() && !self.rows.is_empty() {
            return whole();
        }
        // Rows may have been added at the end. The browser keeps the first ones of a conversation that are left out.
        let first = self.rows.first().map(|(id, _)| id).filter(|_| self.tag == LOG);
        let left_out = before.rows.iter().position(|(id, _)| Some(id) == first).unwrap_or(0);
        let kept = &before.rows[left_out..];
        let are_same = kept.len() <= self.rows.len() && kept.iter().zip(&self.rows).all(|(old, new)| old.0 == new.0);
        if !are_same {
            return whole();
        }
        let changed = kept.iter().zip(&self.rows).filter(|(old, new)| old.1 != new.1);
        let mut updates: Vec<_> = changed.map(|(_, (id, row))| Update::Replace(id.clone(), row.clone())).collect();
        let added: String = self.rows[kept.len()..].iter().map(|(_, row)| row.as_str()).collect();
        if !added.is_empty() {
            updates.push(Update::Append(self.id.to_owned(), added));
        }
        updates
    }
}

/// The view that a browser asks for.
pub(super) fn view(app: &App<'_>, surroundings: &impl Surroundings, target: &Target) -> Result<View, AppError> {
    let path: Vec<&str> = target.path.iter().map(String::as_str).collect();
    match path.as_slice() {
        [] => chains::view(app, target),
        ["inbox"] => inbox::view(app, target),
        ["question", id] => inbox::question(app, target, id),
        ["history"] => history::view(app, target),
        ["statistics"] => statistics::view(app, target),
        ["start"] => Ok(View::new("Start a chain", Section::Start).still(chains::start_form(target))),
        ["chain", id] => chain::view(app, target, frame(app, id)?),
        ["agent", id] => agent::view(app, surroundings, target, frame(app, id)?),
        _ => Err(Refusal::unknown("there is no such page").into()),
    }
}

/// The agent with exactly this id: links have whole ids.
fn frame(app: &App<'_>, id: &str) -> Result<FrameId, AppError> {
    let unknown = || Refusal::unknown("there is no such agent; it may have been removed");
    let id: FrameId = id.parse().map_err(|_| unknown())?;
    app.store.frame(id)?.map(|frame| frame.id).ok_or_else(|| unknown().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(rows: &[(&str, &str)]) -> Block {
        let rows = rows.iter().map(|(id, row)| ((*id).to_owned(), (*row).to_owned())).collect();
        Block { id: "list", tag: "ul", rows }
    }

    #[test]
    fn only_what_has_changed_is_sent() {
        let before = block(&[("a", "1"), ("b", "2")]);
        let replace = |id: &str, html: &str| Update::Replace(id.into(), html.into());
        assert_eq!(block(&[("a", "1"), ("b", "2")]).updates(Some(&before)), []);
        assert_eq!(block(&[("a", "1"), ("b", "3")]).updates(Some(&before)), [replace("b", "3")]);
        let added = Update::Append("list".into(), "3".into());
        assert_eq!(block(&[("a", "1"), ("b", "2"), ("c", "3")]).updates(Some(&before)), [added]);
        let log = |rows| Block { tag: LOG, ..block(rows) };
        let moved = log(&[("b", "0"), ("c", "3")]).updates(Some(&log(&[("a", "1"), ("b", "2")])));
        assert_eq!(moved, [replace("b", "0"), Update::Append("list".into(), "3".into())]);
        for other in [&[("b", "2"), ("a", "1")][..], &[("a", "1")], &[("b", "2")], &[], &[("c", "3")]] {
            let whole = block(other).html();
            assert_eq!(block(other).updates(Some(&before)), [replace("list", &whole)], "{other:?}");
        }
        assert_eq!(before.updates(None), [replace("list", "<ul id=\"list\">12</ul>")]);
    }

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

//! The content of a view in a browser, and the updates to send when it changes. Rows are text in the front's own format.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Instant;

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::runtime::activity::changes::Written;

/// A view: static parts, and live parts.
pub(crate) struct LiveView {
    pub(crate) title: String,
    parts: Vec<Part>,
    /// The output files that the live parts depend on.
    pub(crate) follows: Vec<PathBuf>,
    /// When the view changes without a recorded event, or must be rebuilt anyway. Some changes go unnoticed, such as a killed
    /// runner.
    pub(crate) stale_at: Timestamp,
    /// Computed once, because many browsers may follow the view.
    digest: OnceLock<String>,
}

enum Part {
    Still(String),
    Live(Block),
}

/// The element whose rows are only ever appended.
const LOG: &str = "ol";

/// An element that is sent again when its content changes.
struct Block {
    id: &'static str,
    tag: &'static str,
    /// Each row is an element with its id.
    rows: Vec<(String, String)>,
}

/// A change to the content in a browser.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Update {
    /// Replace the element with this id.
    Replace(String, String),
    /// Append children to the element with this id.
    Append(String, String),
}

impl LiveView {
    pub(crate) fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            parts: Vec::new(),
            follows: Vec::new(),
            stale_at: Timestamp::MAX,
            digest: OnceLock::new(),
        }
    }

    /// Sets when the view changes without a recorded event.
    pub(crate) fn changes_at(mut self, times: impl IntoIterator<Item = Timestamp>) -> Self {
        self.stale_at = times.into_iter().fold(self.stale_at, Timestamp::min);
        self
    }

    pub(crate) fn still(mut self, part: impl Into<String>) -> Self {
        self.parts.push(Part::Still(part.into()));
        self
    }

    pub(crate) fn live(
        mut self,
        id: &'static str,
        tag: &'static str,
        rows: impl IntoIterator<Item = (String, impl Into<String>)>,
    ) -> Self {
        let rows = rows.into_iter().map(|(id, row)| (id, row.into())).collect();
        self.parts.push(Part::Live(Block { id, tag, rows }));
        self
    }

    /// A live part with a single row.
    pub(crate) fn live_row(self, id: &'static str, row: impl Into<String>) -> Self {
        self.live(id, "div", [(format!("{id}-row"), row)])
    }

    /// The HTML of the whole view.
    pub(crate) fn body(&self) -> String {
        let part = |part: &Part| match part {
            Part::Still(part) => part.clone(),
            Part::Live(block) => block.whole(),
        };
        self.parts.iter().map(part).collect()
    }

    fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.parts.iter().filter_map(|part| match part {
            Part::Live(block) => Some(block),
            Part::Still(_) => None,
        })
    }

    /// Hashes all live parts. The result is the same after a restart of the server.
    pub(crate) fn digest(&self) -> &str {
        self.digest.get_or_init(|| {
            let all = self.blocks().fold(Sha256::new(), |all, block| all.chain_update(block.whole()));
            all.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
        })
    }

    /// The changes since `before`. `None` if the browser's content is unknown.
    pub(crate) fn updates(&self, before: Option<&Self>) -> Vec<Update> {
        let known = |block: &Block| before?.blocks().find(|other| other.id == block.id);
        self.blocks().flat_map(|block| block.updates(known(block))).collect()
    }
}

impl Block {
    fn whole(&self) -> String {
        let (tag, id) = (self.tag, self.id);
        let rows: String = self.rows.iter().map(|(_, row)| row.as_str()).collect();
        format!("<{tag} id=\"{id}\">{rows}</{tag}>")
    }

    fn updates(&self, before: Option<&Self>) -> Vec<Update> {
        let whole = || vec![Update::Replace(self.id.to_owned(), self.whole())];
        let Some(before) = before else { return whole() };
        if before.rows.is_empty() && !self.rows.is_empty() {
            return whole();
        }
        // Rows may have been appended. A browser keeps the first rows of a conversation, even if the view now omits them.
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

/// The content that was sent to a browser.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) view: Option<Arc<LiveView>>,
    /// The digest of the browser's content, if another server sent it.
    pub(crate) digest: Option<String>,
}

impl Seen {
    /// Returns the updates to send. Only the last one has the digest of the new content, because the browser is incomplete
    /// before it.
    pub(crate) fn updates(&mut self, view: Arc<LiveView>) -> Vec<(Update, Option<String>)> {
        let digest = view.digest().to_owned();
        let is_known = self.digest.take().is_some_and(|shown| shown == digest);
        let updates = if is_known { Vec::new() } else { view.updates(self.view.as_deref()) };
        self.view = Some(view);
        let last = updates.len();
        updates.into_iter().enumerate().map(|(at, update)| (update, (at + 1 == last).then(|| digest.clone()))).collect()
    }
}

/// A view, and when it was built.
#[derive(Clone)]
pub(crate) struct Made {
    pub(crate) view: Arc<LiveView>,
    /// The writes that had happened before the view was built.
    pub(crate) written: Written,
    /// The earliest time to rebuild the view. Slow views are rebuilt less often.
    pub(crate) rests_until: Instant,
}

impl Made {
    /// Whether the view must be rebuilt, as soon as it may be.
    pub(crate) fn is_stale(&self, written: &Written, now: Timestamp) -> bool {
        now >= self.view.stale_at || self.written.differs(written, &self.view.follows)
    }
}

/// Views that several browsers follow. The last few are kept without a follower, because a page follows its view right after
/// loading.
#[derive(Default)]
pub(crate) struct SharedViews(Mutex<Known>);

#[derive(Default)]
struct Known {
    views: HashMap<String, (Weak<LiveView>, Written, Instant)>,
    last: VecDeque<Arc<LiveView>>,
}

const KEPT: usize = 4;

impl SharedViews {
    /// The last view that was built for this address.
    pub(crate) fn get(&self, of: &str) -> Option<Made> {
        let (view, written, rests_until) = self.known().views.get(of).cloned()?;
        Some(Made { view: view.upgrade()?, written, rests_until })
    }

    /// Adds a view, unless a newer one was made in the meantime.
    pub(crate) fn insert(&self, of: &str, made: &Made) {
        let (mut known, view) = (self.known(), &made.view);
        let newer = |(other, written, _): &(Weak<LiveView>, Written, Instant)| {
            other.strong_count() > 0 && written.is_after(&made.written)
        };
        if known.views.get(of).is_some_and(newer) {
            return;
        }
        known.views.retain(|_, (view, ..)| view.strong_count() > 0);
        known.views.insert(of.to_owned(), (Arc::downgrade(view), made.written.clone(), made.rests_until));
        known.last.push_back(Arc::clone(view));
        if known.last.len() > KEPT {
            known.last.pop_front();
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(rows: &[(&str, &str)]) -> Block {
        let rows = rows.iter().map(|(id, row)| ((*id).to_owned(), (*row).to_owned())).collect();
        Block { id: "list", tag: "ul", rows }
    }

    #[test]
    fn a_view_is_stale_once_something_that_it_shows_was_written() {
        let [shown, other] = ["/a", "/b"].map(PathBuf::from);
        let at = Timestamp::from_second;
        let view = LiveView { follows: vec![shown.clone()], ..LiveView::new("").changes_at([at(9).unwrap()]) };
        let made =
            Made { view: Arc::new(view), written: Written::new(1, [(shown.clone(), 5)]), rests_until: Instant::now() };
        let is_stale = |records, outputs: &[(&PathBuf, u64)], second| {
            let outputs = outputs.iter().map(|(path, length)| ((*path).clone(), *length));
            made.is_stale(&Written::new(records, outputs), at(second).unwrap())
        };
        assert!(!is_stale(1, &[(&shown, 5), (&other, 7)], 0));
        assert!(is_stale(2, &[(&shown, 5)], 0) && is_stale(1, &[(&shown, 6)], 0) && is_stale(1, &[(&shown, 5)], 9));
        let unknown = Made { written: Written::new(1, [(other, 5)]), ..made.clone() };
        assert!(unknown.is_stale(&Written::new(1, [(shown, 5)]), at(0).unwrap()), "what it shows may be older");
    }

    #[test]
    fn a_view_is_kept_as_long_as_it_is_followed() {
        let views = SharedViews::default();
        let insert = |of: &str, records| {
            let (view, written) = (Arc::new(LiveView::new("")), Written::new(records, []));
            views.insert(of, &Made { view, written, rests_until: Instant::now() });
        };
        insert("/", 2);
        let followed = views.get("/").unwrap();
        insert("/", 1);
        (0..KEPT).for_each(|at| insert(&at.to_string(), 1));
        assert!(Arc::ptr_eq(&views.get("/").unwrap().view, &followed.view));
        drop(followed);
        assert!(views.get("/").is_none() && views.get("0").is_some());
    }

    #[test]
    fn only_what_has_changed_is_sent() {
        let before = block(&[("a", "1"), ("b", "2")]);
        let replace = |id: &str, row: &str| Update::Replace(id.into(), row.into());
        assert_eq!(block(&[("a", "1"), ("b", "2")]).updates(Some(&before)), []);
        assert_eq!(block(&[("a", "1"), ("b", "3")]).updates(Some(&before)), [replace("b", "3")]);
        let added = Update::Append("list".into(), "3".into());
        assert_eq!(block(&[("a", "1"), ("b", "2"), ("c", "3")]).updates(Some(&before)), [added]);
        let log = |rows| Block { tag: LOG, ..block(rows) };
        let moved = log(&[("b", "0"), ("c", "3")]).updates(Some(&log(&[("a", "1"), ("b", "2")])));
        assert_eq!(moved, [replace("b", "0"), Update::Append("list".into(), "3".into())]);
        for other in [&[("b", "2"), ("a", "1")][..], &[("a", "1")], &[("b", "2")], &[], &[("c", "3")]] {
            let whole = block(other).whole();
            assert_eq!(block(other).updates(Some(&before)), [replace("list", &whole)], "{other:?}");
        }
        assert_eq!(before.updates(None), [replace("list", "<ul id=\"list\">12</ul>")]);
    }
}

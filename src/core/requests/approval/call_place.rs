//! The place where a call that needs an approval acts: the directory that it runs in, and where the paths in it lead.
//!
//! A person approves what they were shown. If a link leads elsewhere by the time the call is repeated, it is another call.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::core::text::escape::one_line;

/// Where a call acts, at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CallPlace {
    /// The directory of the agent's shell, in which its commands run.
    pub directory: Lead,
    /// The paths in the call's input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<Lead>,
}

/// A path, and where it leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Lead {
    /// The path as named.
    pub path: String,
    /// With links resolved.
    pub real: String,
}

impl Lead {
    pub(crate) fn new(path: String, real: &Path) -> Self {
        Self { path, real: text_of(real) }
    }

    /// Whether the path leads elsewhere than it says.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.real != self.path
    }
}

impl CallPlace {
    /// Where a call with this input acts, if its agent's shell is in `directory`. `real` determines where an absolute path
    /// leads.
    pub(crate) fn new(input: &Value, directory: &Path, home: &Path, real: impl Fn(&Path) -> PathBuf) -> Self {
        let leads = |path: String| {
            let real = real(&absolute(&path, directory, home));
            Lead::new(path, &real)
        };
        Self {
            directory: Lead::new(text_of(directory), &real(directory)),
            paths: named_paths(input).into_iter().map(leads).collect(),
        }
    }

    /// Where `path` leads, if elsewhere than it says.
    pub(crate) fn elsewhere(&self, path: &str) -> Option<&str> {
        let says = Path::new(&self.directory.path).join(local(path));
        let real = self.paths.iter().find(|lead| lead.path == path).map(|lead| lead.real.as_str());
        real.filter(|real| Path::new(real) != says)
    }

    /// What leads elsewhere `now` than before, so that the call is not the one that a person was shown.
    pub(crate) fn moved(&self, now: &Self) -> Option<Moved> {
        let pairs = std::iter::once((&self.directory, &now.directory)).chain(self.paths.iter().zip(&now.paths));
        pairs.into_iter().find(|(was, now)| was.real != now.real).map(|(was, now)| Moved {
            path: was.path.clone(),
            was: was.real.clone(),
            now: now.real.clone(),
        })
    }
}

/// A path that leads elsewhere than it did when a person was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    path: String,
    was: String,
    pub(crate) now: String,
}

impl Moved {
    /// Why an allowed call is not run, for its agent.
    pub(crate) fn in_words(&self) -> String {
        let [path, was, now] = [&self.path, &self.was, &self.now].map(|path| one_line(path));
        format!(
            "not run: a person has allowed this call, but {path} leads to {now} now, and led to {was} when they were \
             asked. Make the call again if it is still right: they are asked again"
        )
    }
}

/// Fields whose texts are never paths, whatever they look like.
const TEXTS: [&str; 9] =
    ["command", "description", "content", "old_string", "new_string", "new_source", "prompt", "query", "url"];

/// Parts of the names of fields with paths.
const NAMES: [&str; 6] = ["path", "file", "dir", "folder", "cwd", "root"];

/// The longest path that a system takes, in bytes.
const LONGEST: usize = 4096;

/// The paths in a call's input, in order.
pub(crate) fn named_paths(input: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    collect("", input, &mut paths);
    paths
}

/// Whether the directory in which a call is made matters: a command acts there, and relative paths begin there.
pub(crate) fn depends_on_directory(input: &Value) -> bool {
    let is_relative = |path: &String| path != "~" && !STARTS.iter().any(|start| path.starts_with(start));
    input["command"].is_string() || named_paths(input).iter().any(is_relative)
}

fn collect(name: &str, value: &Value, paths: &mut Vec<String>) {
    match value {
        Value::String(text) if is_path(name, text) && !paths.contains(text) => paths.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(name, item, paths)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| collect(name, value, paths)),
        _ => {}
    }
}

fn is_path(name: &str, text: &str) -> bool {
    let named = || {
        let name = name.to_lowercase();
        NAMES.iter().any(|part| name.contains(part)) && !text.contains("://")
    };
    let is_line = !text.is_empty() && text.len() <= LONGEST && !text.contains(['\n', '\0']);
    is_line && !TEXTS.contains(&name) && (text == "~" || STARTS.iter().any(|start| text.starts_with(start)) || named())
}

/// The beginnings of paths that are not relative.
const STARTS: [&str; 3] = ["/", "~/", FILE_URL];
const FILE_URL: &str = "file:///";

/// The path as Claude Code reads it.
fn absolute(path: &str, directory: &Path, home: &Path) -> PathBuf {
    match path.strip_prefix('~') {
        Some("") => home.to_owned(),
        Some(below) if below.starts_with('/') => home.join(below.trim_start_matches('/')),
        _ => directory.join(local(path)),
    }
}

fn local(path: &str) -> &str {
    path.strip_prefix("file://").unwrap_or(path)
}

/// Whether Claude Code would make `later` in `began` of a relative path of which it made `earlier` in `shell`: a resumed
/// `claude` starts in the agent's directory, and resolves relative paths there.
pub(crate) fn is_same_relative(earlier: &str, shell: &Path, later: &str, began: &Path) -> bool {
    let later = Path::new(later);
    let is_plain = |path: &Path| path.is_absolute() && !path.components().any(|part| part == Component::ParentDir);
    if ![Path::new(earlier), shell, later, began].into_iter().all(is_plain) {
        return false;
    }
    let shared = later.components().zip(began.components()).take_while(|(one, other)| one == other).count();
    let up = began.components().count() - shared;
    let above = shell.ancestors().nth(up).unwrap_or(Path::new("/"));
    above.join(later.components().skip(shared).collect::<PathBuf>()) == Path::new(earlier)
}

/// A path that is not UTF-8 is distinguished from others, too.
fn text_of(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    path.to_str().map_or_else(|| bytes.escape_ascii().to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn place(input: &Value, links: &'static [(&str, &str)]) -> CallPlace {
        let real = |path: &Path| {
            let follow = |link: &str, to: &str| match path.strip_prefix(link).ok()? {
                rest if rest == Path::new("") => Some(to.into()),
                rest => Some(Path::new(to).join(rest)),
            };
            links.iter().find_map(|(link, to)| follow(link, to)).unwrap_or_else(|| path.to_owned())
        };
        CallPlace::new(input, Path::new("/p/sub"), Path::new("/home/u"), real)
    }

    #[test]
    fn the_paths_of_any_tool_are_found() {
        let input = json!({
            "file_path": "/p/a", "notebook_path": "b.ipynb", "path": "", "command": "/bin/rm /p/a", "content": "/p/text",
            "edits": [{"old_string": "/p/no"}], "from": "/p/c", "paths": ["d", "~/e"], "nested": {"targetDir": "f"},
            "uri": "file:///p/g", "source_path": "https://example.org/h", "title": "i", "lines": "/p\n/q", "limit": 7,
        });
        let found = named_paths(&input);
        for path in ["/p/a", "b.ipynb", "/p/c", "d", "~/e", "f", "file:///p/g"] {
            assert!(found.iter().any(|found| found == path), "{path} in {found:?}");
        }
        assert_eq!(found.len(), 7, "{found:?}");
    }

    #[test]
    fn where_a_path_leads_is_known_however_it_is_named() {
        let input = json!({"file_path": "/p/link/x", "path": "y", "dirs": ["~/z", "file:///p/link/w"]});
        let place = place(&input, &[("/p/link", "/out"), ("/home/u", "/data/u"), ("/p/sub", "/real")]);
        assert_eq!(place.directory, Lead { path: "/p/sub".into(), real: "/real".into() });
        for (path, real) in
            [("/p/link/x", "/out/x"), ("y", "/real/y"), ("~/z", "/data/u/z"), ("file:///p/link/w", "/out/w")]
        {
            assert_eq!(place.elsewhere(path), Some(real), "{path}");
        }
        assert_eq!(place.elsewhere("/p/other"), None);
    }

    #[test]
    fn a_relative_path_leads_where_it_says_below_its_directory() {
        let input = json!({"path": "a", "dir": "./b", "file": "../c", "root": "/p/sub/d"});
        let place = place(&input, &[("/p/sub/../c", "/p/c")]);
        assert_eq!(
            ["a", "./b", "../c", "/p/sub/d"].map(|path| place.elsewhere(path)),
            [None, None, Some("/p/c"), None]
        );
    }

    #[test]
    fn a_path_that_leads_elsewhere_than_it_did_is_named() {
        let input = json!({"file_path": "/p/docs/readme.md"});
        let asked = place(&input, &[]);
        assert_eq!(asked.moved(&place(&input, &[])), None);
        let moved = asked.moved(&place(&input, &[("/p/docs", "/outside")])).unwrap();
        let said = moved.in_words();
        assert!(said.contains("/p/docs/readme.md leads to /outside/readme.md now"), "{said}");
        let moved = asked.moved(&place(&input, &[("/p/sub", "/outside\n# do this")])).unwrap().in_words();
        assert!(moved.contains("/p/sub leads to /outside⏎# do this now"), "{moved}");
    }

    #[test]
    fn a_relative_path_is_the_same_wherever_it_is_read() {
        let is_same = |earlier, shell: &str, later| is_same_relative(earlier, shell.as_ref(), later, "/p".as_ref());
        assert!(is_same("/p/sub/x", "/p/sub", "/p/x"));
        assert!(is_same("/p/x", "/p/sub", "/x"), "../x");
        assert!(is_same("/p/sub/y/x", "/p/sub", "/p/y/x"));
        assert!(is_same("/p/x", "/p", "/p/x"));
        for (earlier, later) in
            [("/p/sub/x", "/p/y"), ("/p/sub/x", "/p/sub/x"), ("/q/x", "/p/x"), ("x", "x"), ("/p/x", "/p/x")]
        {
            assert!(!is_same(earlier, "/p/sub", later), "{earlier} {later}");
        }
    }
}

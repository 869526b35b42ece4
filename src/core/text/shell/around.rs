//! What may surround a command whose words are known: a change of the directory before it, comments, redirections of standard
//! error, and its standard input.

use super::{Simple, WordReader, is_plain};

/// A here-document that is still to be read.
pub(super) struct HereDocument {
    delimiter: String,
    /// Whether its text is taken literally.
    is_quoted: bool,
    /// Whether tabs at the beginnings of its lines are dropped.
    drops_tabs: bool,
}

impl WordReader<'_> {
    /// Ends a command: `cd` changes the directory for what follows, and any other must be the only one.
    pub(super) fn end_command(&mut self) -> Option<()> {
        self.end_word();
        if self.here_document.is_some() || self.words.is_empty() || !self.found.words.is_empty() {
            return None;
        }
        self.redirected = false;
        let (words, input) = (std::mem::take(&mut self.words), self.input.take());
        if words[0] == "cd" {
            self.pwd = changed(&self.pwd, &words[1..]).filter(|_| input.is_none())?;
            self.found.directory = Some(self.pwd.clone());
        } else {
            self.found = Simple { words, input, directory: self.found.directory.take() };
        }
        Some(())
    }

    /// Skips a comment up to the end of its line.
    pub(super) fn skip_comment(&mut self) -> bool {
        let rest = self.rest.as_str();
        let is_comment = rest.starts_with('#');
        if is_comment {
            self.rest = rest[rest.find('\n').unwrap_or(rest.len())..].chars();
        }
        is_comment
    }

    /// A redirection that has no effect on what the command does, or its standard input. `None`: any other one.
    pub(super) fn redirection(&mut self) -> Option<bool> {
        let rest = self.rest.as_str();
        let is_over =
            |after: &str| after.is_empty() || after.starts_with([' ', '\t', '\n', ';']) || after.starts_with("&&");
        let null = |after: &'_ str| -> Option<usize> {
            let target = after.trim_start_matches([' ', '\t']).strip_prefix("/dev/null")?;
            is_over(target).then(|| rest.len() - target.len())
        };
        let of_errors = rest.strip_prefix("2>&1").filter(|after| is_over(after)).map(|after| rest.len() - after.len());
        let of_errors = of_errors.or_else(|| null(rest.strip_prefix("2>>").or_else(|| rest.strip_prefix("2>"))?));
        if let Some(length) = of_errors {
            self.rest = rest[length..].chars();
            self.redirected = true;
            return Some(true);
        }
        if !rest.starts_with('<') {
            return Some(false);
        }
        if self.input.is_some() || self.here_document.is_some() {
            return None;
        }
        if let Some(length) = null(&rest[1..]) {
            self.rest = rest[length..].chars();
            self.input = Some(String::new());
        } else {
            self.begin_here_document(rest.strip_prefix("<<")?)?;
        }
        self.redirected = true;
        Some(true)
    }

    fn begin_here_document(&mut self, after: &str) -> Option<()> {
        let (document, length) = HereDocument::begin(after)?;
        let rest = self.rest.as_str();
        self.rest = rest[rest.len() - after.len() + length..].chars();
        self.here_document = Some(document);
        Some(())
    }

    /// Reads the here-document that begins here, at the start of a line.
    pub(super) fn read_here_document(&mut self) -> Option<()> {
        let Some(document) = self.here_document.take() else { return Some(()) };
        let (text, length) = document.read(self.rest.as_str())?;
        self.rest = self.rest.as_str()[length..].chars();
        self.input = Some(text);
        Some(())
    }

    /// `$(cat <<'EOF' …)` in double quotes, with which agents write several lines: its text.
    pub(super) fn text_of_cat(&mut self) -> Option<()> {
        let rest = self.rest.as_str().strip_prefix("(cat <<")?;
        let (document, length) = HereDocument::begin(rest)?;
        let rest = rest[length..].strip_prefix('\n')?;
        let (text, length) = document.read(rest)?;
        let after = rest[length..].trim_start_matches([' ', '\t', '\n']).strip_prefix(')')?;
        self.push_str(text.trim_end_matches('\n'));
        self.rest = after.chars();
        Some(())
    }
}

impl HereDocument {
    /// Parses the text after `<<`: how the document ends, and the length of that.
    fn begin(after: &str) -> Option<(Self, usize)> {
        let (drops_tabs, word) = after.strip_prefix('-').map_or((false, after), |word| (true, word));
        let word = word.trim_start_matches([' ', '\t']);
        let quote = word.chars().next().filter(|first| "'\"".contains(*first));
        let (delimiter, rest) = match quote {
            Some(quote) => word[1..].split_once(quote)?,
            None => word.split_at(word.find([' ', '\t', '\n', ';', '&']).unwrap_or(word.len())),
        };
        let is_over = rest.is_empty() || rest.starts_with([' ', '\t', '\n', ';']);
        let is_name = !delimiter.is_empty() && delimiter.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let document = Self { delimiter: delimiter.to_owned(), is_quoted: quote.is_some(), drops_tabs };
        (is_over && is_name).then_some((document, after.len() - rest.len()))
    }

    /// Its text at the start of `rest`, and the length of all its lines. `None` if it has no end, or if only a shell knows it.
    fn read(&self, rest: &str) -> Option<(String, usize)> {
        let (mut text, mut length) = (String::new(), 0);
        for line in rest.split_inclusive('\n') {
            length += line.len();
            let line = if self.drops_tabs { line.trim_start_matches('\t') } else { line };
            if line.strip_suffix('\n').unwrap_or(line) == self.delimiter {
                let is_known = self.is_quoted || !text.contains(['$', '`', '\\']);
                return is_known.then_some((text, length));
            }
            text.push_str(line);
        }
        None
    }
}

/// Where `cd` with these arguments leads from `pwd`.
fn changed(pwd: &str, arguments: &[String]) -> Option<String> {
    let [directory] = arguments else { return None };
    // `-`, `+1` and `~1` depend on earlier directories. Shells disagree on two slashes at the beginning.
    let is_known = directory.chars().next().is_some_and(|first| first == '.' || first == '/' || is_plain(first))
        && !directory.starts_with(['-', '+', '=', '%'])
        && !directory.starts_with("//");
    let mut path = if directory.starts_with('/') { "" } else { pwd.trim_end_matches('/') };
    if !is_known || !directory.starts_with('/') && !pwd.starts_with('/') {
        return None;
    }
    let (mut below, mut ups) = (Vec::new(), true);
    for name in directory.split('/').filter(|name| !["", "."].contains(name)) {
        // After a name, `..` depends on what that name is.
        match name {
            ".." if !ups => return None,
            ".." => path = path.rsplit_once('/').map_or("", |(above, _)| above),
            name => {
                ups = false;
                below.push(name);
            }
        }
    }
    let whole = [&[path], below.as_slice()].concat().join("/");
    Some(if whole.is_empty() { "/".to_owned() } else { whole })
}

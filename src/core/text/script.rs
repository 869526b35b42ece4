//! The simple commands in a shell script, wherever they are: in lists, pipes, loops, functions and substitutions.
//!
//! This is enough to judge what a script might run, not to run it: reserved words are words, and anything that only a shell
//! knows is a [`HOLE`].

/// Stands for a part of a word that only a shell knows.
pub(crate) const HOLE: char = '\u{fffc}';

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Script {
    pub commands: Vec<ScriptCommand>,
    /// Here-documents and here-strings.
    pub texts: Vec<ScriptText>,
    /// For each pipeline, the one in whose words it is substituted.
    within: Vec<Option<usize>>,
}

/// A simple command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScriptCommand {
    pub words: Vec<String>,
    /// The pipeline that it is a part of.
    pub pipeline: usize,
}

/// The input text of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScriptText {
    pub text: String,
    pub pipeline: usize,
}

impl Script {
    /// The content of `script`. `None` if it cannot be read.
    pub(crate) fn read(script: &str) -> Option<Self> {
        let mut reader = ScriptReader { rest: script, script: Self::default(), documents: Vec::new(), depth: 0 };
        reader.list(None, None)?;
        Some(reader.script)
    }

    /// A pipeline and those in whose words it is substituted.
    pub(crate) fn around(&self, pipeline: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(pipeline), |inner| self.within[*inner])
    }
}

struct ScriptReader<'a> {
    rest: &'a str,
    script: Script,
    /// The here-documents that begin on the next line.
    documents: Vec<Document>,
    depth: usize,
}

struct Document {
    delimiter: String,
    is_quoted: bool,
    pipeline: usize,
}

/// Deeper scripts are not read.
const DEEPEST: usize = 50;

/// What ends a word outside of quotes.
const ENDS_A_WORD: &[char] = &[' ', '\t', '\n', ';', '&', '|', '<', '>', '(', ')'];

impl ScriptReader<'_> {
    /// Reads commands up to `end`, or to the end of the script. `within`: the pipeline that they are substituted in.
    fn list(&mut self, end: Option<char>, within: Option<usize>) -> Option<()> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let mut pipeline = self.new_pipeline(within);
        let mut words = Vec::new();
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t']).trim_start_matches("\\\n");
            let Some(next) = self.rest.chars().next() else {
                self.end_command(&mut words, pipeline);
                self.depth -= 1;
                return (end.is_none() && self.documents.is_empty()).then_some(());
            };
            match next {
                ' ' | '\t' => {}
                '#' => self.rest = &self.rest[self.rest.find('\n').unwrap_or(self.rest.len())..],
                '<' | '>' => self.redirection(&mut words, pipeline)?,
                '\n' | ';' | '&' | '|' | '(' | ')' => {
                    self.rest = &self.rest[1..];
                    if next == '&' && self.rest.starts_with('>') {
                        continue;
                    }
                    self.end_command(&mut words, pipeline);
                    match next {
                        ')' if end == Some(')') => {
                            self.depth -= 1;
                            return Some(());
                        }
                        '(' => self.list(Some(')'), Some(pipeline))?,
                        '|' if !self.rest.starts_with('|') => {
                            self.rest = self.rest.strip_prefix('&').unwrap_or(self.rest);
                        }
                        '\n' => {
                            self.here_documents()?;
                            pipeline = self.new_pipeline(within);
                        }
                        _ => pipeline = self.new_pipeline(within),
                    }
                }
                _ => words.push(self.word(pipeline)?),
            }
        }
    }

    fn new_pipeline(&mut self, within: Option<usize>) -> usize {
        self.script.within.push(within);
        self.script.within.len() - 1
    }

    fn end_command(&mut self, words: &mut Vec<String>, pipeline: usize) {
        if !words.is_empty() {
            self.script.commands.push(ScriptCommand { words: std::mem::take(words), pipeline });
        }
    }

    /// A redirection. Its target is not a word of the command.
    fn redirection(&mut self, words: &mut Vec<String>, pipeline: usize) -> Option<()> {
        // The number of the redirected descriptor looked like a word.
        if words.last().is_some_and(|last| last.chars().all(|c| c.is_ascii_digit())) {
            words.pop();
        }
        if let Some(rest) = self.rest.strip_prefix("<<<") {
            self.rest = rest.trim_start_matches([' ', '\t']);
            let text = self.word(pipeline)?;
            self.script.texts.push(ScriptText { text, pipeline });
            return Some(());
        }
        if let Some(rest) = self.rest.strip_prefix("<<") {
            self.rest = rest.strip_prefix('-').unwrap_or(rest).trim_start_matches([' ', '\t']);
            let is_quoted = self.rest.starts_with(['\'', '"', '\\']);
            let delimiter = self.word(pipeline)?;
            self.documents.push(Document { delimiter, is_quoted, pipeline });
            return Some(());
        }
        if self.rest[1..].starts_with('(') {
            self.rest = &self.rest[2..];
            words.push(HOLE.to_string());
            return self.list(Some(')'), Some(pipeline));
        }
        self.rest = self.rest.trim_start_matches(['<', '>', '&', '|']).trim_start_matches([' ', '\t']);
        if !self.rest.starts_with(ENDS_A_WORD) && !self.rest.is_empty() {
            self.word(pipeline)?;
        }
        Some(())
    }

    fn here_documents(&mut self) -> Option<()> {
        for Document { delimiter, is_quoted, pipeline } in std::mem::take(&mut self.documents) {
            let is_end = |line: &str| line.strip_suffix('\n').unwrap_or(line).trim_start_matches('\t') == delimiter;
            let before = self.rest;
            let lines = before.split_inclusive('\n');
            let length: usize = lines.take_while(|line| !is_end(line)).map(str::len).sum();
            let (text, after) = before.split_at(length);
            let after = &after[after.split_inclusive('\n').next()?.len()..];
            self.script.texts.push(ScriptText { text: text.to_owned(), pipeline });
            if !is_quoted {
                self.rest = text;
                while !self.rest.is_empty() {
                    self.in_double_quotes(pipeline, &mut String::new())?;
                    self.rest = self.rest.strip_prefix('"').unwrap_or(self.rest);
                }
            }
            self.rest = after;
        }
        Some(())
    }

    fn word(&mut self, pipeline: usize) -> Option<String> {
        let mut word = String::new();
        while let Some(next) = self.rest.chars().next().filter(|next| !ENDS_A_WORD.contains(next)) {
            match next {
                '\'' => {
                    let (inside, after) = self.rest[1..].split_once('\'')?;
                    word.push_str(inside);
                    self.rest = after;
                }
                '"' => {
                    self.rest = &self.rest[1..];
                    self.in_double_quotes(pipeline, &mut word)?;
                    // It continued to the end of the script.
                    if !self.rest.starts_with('"') {
                        return None;
                    }
                    self.rest = &self.rest[1..];
                }
                '\\' => {
                    let escaped = self.rest[1..].chars().next();
                    word.extend(escaped.filter(|escaped| *escaped != '\n'));
                    self.rest = &self.rest[1 + escaped.map_or(0, char::len_utf8)..];
                }
                '$' if self.rest.starts_with("$'") => self.ansi_quoted(&mut word)?,
                '$' | '`' => self.expansion(pipeline, &mut word)?,
                _ => {
                    word.push(next);
                    self.rest = &self.rest[next.len_utf8()..];
                }
            }
        }
        Some(word)
    }

    /// Reads up to a double quote, or to the end.
    fn in_double_quotes(&mut self, pipeline: usize, word: &mut String) -> Option<()> {
        while let Some(next) = self.rest.chars().next().filter(|next| *next != '"') {
            match next {
                '\\' => {
                    let escaped = self.rest[1..].chars().next();
                    word.extend(escaped.filter(|escaped| *escaped != '\n'));
                    self.rest = &self.rest[1 + escaped.map_or(0, char::len_utf8)..];
                }
                '$' | '`' => self.expansion(pipeline, word)?,
                _ => {
                    word.push(next);
                    self.rest = &self.rest[next.len_utf8()..];
                }
            }
        }
        Some(())
    }

    fn ansi_quoted(&mut self, word: &mut String) -> Option<()> {
        let mut escaped = false;
        let inside = &self.rest[2..];
        let end = inside.find(|c: char| {
            let is_end = c == '\'' && !escaped;
            escaped = c == '\\' && !escaped;
            is_end
        })?;
        // Escapes can spell anything.
        word.extend(inside[..end].contains('\\').then_some(HOLE));
        word.push_str(&inside[..end]);
        self.rest = &inside[end + 1..];
        Some(())
    }

    /// A variable or a substitution.
    fn expansion(&mut self, pipeline: usize, word: &mut String) -> Option<()> {
        let rest = self.rest;
        if let Some(inside) = rest.strip_prefix('`') {
            let mut escaped = false;
            let end = inside.find(|c: char| {
                let is_end = c == '`' && !escaped;
                escaped = c == '\\' && !escaped;
                is_end
            })?;
            let inner = inside[..end].replace("\\`", "`");
            let inner = ScriptReader {
                rest: &inner,
                script: std::mem::take(&mut self.script),
                documents: Vec::new(),
                depth: self.depth,
            };
            self.script = inner.substituted(pipeline)?;
            self.rest = &inside[end + 1..];
        } else if rest.starts_with("$((") {
            let end = rest.find("))")?;
            // A sum has no commands, but `$((a) | b)` looks the same.
            if rest[3..end].contains(|c: char| !c.is_ascii_alphanumeric() && !"_+-*/%<>=!&|^~ ?:,".contains(c))
                || rest[3..end].contains("-cli")
            {
                return None;
            }
            self.rest = &rest[end + 2..];
        } else if let Some(inside) = rest.strip_prefix("$(") {
            self.rest = inside;
            let documents = std::mem::take(&mut self.documents);
            self.list(Some(')'), Some(pipeline))?;
            self.documents = documents;
        } else if let Some(inside) = rest.strip_prefix("${") {
            let (parameter, after) = inside.split_once('}')?;
            // Its default can be anything.
            if parameter.contains(['$', '`', '"', '\'', '{', '\\']) {
                return None;
            }
            word.push_str(parameter.split_once(['-', '=', '+']).map_or("", |(_, default)| default));
            self.rest = after;
        } else {
            let name = &rest[1..];
            let special = name.starts_with(|c: char| "@*#?$!-".contains(c) || c.is_ascii_digit());
            let length = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
            let length = if special { 1 } else { length };
            self.rest = &name[length..];
            if length == 0 {
                word.push('$');
                return Some(());
            }
        }
        word.push(HOLE);
        Some(())
    }

    fn substituted(mut self, pipeline: usize) -> Option<Script> {
        self.list(None, Some(pipeline))?;
        Some(self.script)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn commands(script: &str) -> Option<Vec<Vec<String>>> {
        Script::read(script).map(|script| script.commands.into_iter().map(|command| command.words).collect())
    }

    #[test]
    fn commands_are_found_wherever_they_are() {
        for (script, expected) in [
            ("a b; c && d || e & f | g\nh # i", &["a b", "c", "d", "e", "f", "g", "h"][..]),
            ("if a; then b 'c d'; fi", &["if a", "then b c d", "fi"]),
            ("a \"b $(c \"d e\" | f) g\"", &["c d e", "f", "a b \u{fffc} g"]),
            ("a `b \\`c\\`` \"`d`\"", &["c", "b \u{fffc}", "d", "a \u{fffc} \u{fffc}"]),
            ("(a; b) | { c; }", &["a", "b", "{ c", "}"]),
            ("f() { a; }; f", &["f", "{ a", "}", "f"]),
            ("a 2>&1 >b <c 2>/dev/null &>d e", &["a e"]),
            ("a <<'E' | b\n$(c) 'd\nE\ne", &["a", "b", "e"]),
            ("a <<E\n$(c) 'd\nE\ne", &["a", "c", "e"]),
            ("a <(b) $((1 + 2)) ${c:-d} $e $'f\\'g'", &["b", "a \u{fffc} \u{fffc} d\u{fffc} \u{fffc} \u{fffc}f\\'g"]),
            ("case $a in b) c;; esac", &["case \u{fffc} in b", "c", "esac"]),
            ("a \\\n b\\\nc \\\\", &["a bc \\"]),
        ] {
            let found: Vec<String> = commands(script).unwrap().iter().map(|words| words.join(" ")).collect();
            assert_eq!(found, expected, "{script:?}");
        }
        for unread in ["a 'b", "a \"b", "a $(b", "a `b", "a <<E\nb", "a ${b:-$(c)}", "a ${b"] {
            assert_eq!(commands(unread), None, "{unread:?}");
        }
        assert_eq!(commands(&"$(".repeat(1_000)), None);
    }

    #[test]
    fn texts_belong_to_their_pipeline() {
        let script = Script::read("a <<E | sh\nb\nE\nc <<< 'd e' \"$(f <<G\nh\nG\n)\"").unwrap();
        let texts: Vec<_> = script.texts.iter().map(|text| (text.text.as_str(), text.pipeline)).collect();
        let of = |word: &str| script.commands.iter().find(|command| command.words[0] == word).unwrap().pipeline;
        assert_eq!(texts, [("b\n", of("a")), ("d e", of("c")), ("h\n", of("f"))]);
        assert_eq!(of("a"), of("sh"));
        assert_eq!(script.around(of("f")).collect::<Vec<_>>(), [of("f"), of("c")]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_not(text: String) {
            let _ = Script::read(&text);
        }

        #[test]
        fn text_like_a_script_is_read_or_not(text in "[ab $(){}'\"\\\\\n\t`=;|&<>#é1-]{0,60}") {
            let _ = Script::read(&text);
        }
    }
}

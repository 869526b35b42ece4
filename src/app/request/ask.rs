//! Lets an agent ask a person.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::app::error::{AppError, Refusal};
use crate::app::request::form_input::{self, FormInput};
use crate::app::spawn::named_file::{self, Reading};
use crate::app::{App, GivenText};
use crate::runtime::requests::agent_lookup;
use crate::runtime::requests::agent_request::AgentRequest;
use crate::runtime::requests::question_files::QuestionFile;
use crate::store::Caller;

#[derive(Clone, Debug, Default)]
pub(crate) struct Input {
    pub(crate) question: Option<GivenText>,
    /// What a person should read before they answer.
    pub(crate) context: Option<GivenText>,
    pub(crate) form: FormInput,
    /// The file in which to ask the question.
    pub(crate) file: Option<PathBuf>,
    /// A JSON array of several questions, instead of one.
    pub(crate) questions: Option<GivenText>,
}

/// The size limit of a text, in bytes.
const LARGEST: u64 = 1 << 20;

/// Builds the caller's request. Writes nothing.
pub(super) fn request(
    app: &App<'_>,
    caller: Caller,
    input: Input,
    standard_input: &mut dyn Read,
) -> Result<AgentRequest, AppError> {
    let below = agent_lookup::reads_only_in(app.store, caller)?;
    let mut text = |given| text(app, given, below.as_deref(), standard_input);
    let question = match input.question {
        Some(GivenText::StandardInput) => Some(text(GivenText::StandardInput)?.trim_end_matches('\n').to_owned()),
        given => given.map(&mut text).transpose()?,
    };
    if let Some(path) = &input.file {
        let file = QuestionFile::named(app.store, caller, path, &app.directory).map_err(Refusal::new)?;
        let question = question.map_or_else(|| file.question(), Ok).map_err(Refusal::new)?;
        let context = input.context.map(&mut text).transpose()?;
        let (file, form) = file.of(form_input::one(&question, context, input.form, app.now)?);
        return Ok(AgentRequest::AskInFile(file, Box::new(form)));
    }
    let forms = match input.questions {
        Some(questions) => form_input::several(&text(questions)?, input.form.expires.as_deref(), app.now)?,
        None => {
            let context = input.context.map(&mut text).transpose()?;
            vec![form_input::one(&question.unwrap_or_default(), context, input.form, app.now)?]
        }
    };
    Ok(AgentRequest::Ask(forms))
}

fn text(
    app: &App<'_>,
    given: GivenText,
    below: Option<&Path>,
    standard_input: &mut dyn Read,
) -> Result<String, Refusal> {
    match given {
        GivenText::Text(text) => Ok(text),
        GivenText::File(file) => text_of(app, &file, below),
        GivenText::StandardInput => read(standard_input, "standard input"),
    }
}

/// Reads a file that an agent names. `below` is the directory in which the file must be.
fn text_of(app: &App<'_>, file: &Path, below: Option<&Path>) -> Result<String, Refusal> {
    let reading = Reading {
        below,
        most: LARGEST,
        use_: "shown to a person",
        instead: "write what they need into a file in your directory",
        hint: None,
    };
    checked(named_file::read(app, file, reading)?, &named_file::shown(file))
}

fn read(from: impl Read, shown: &str) -> Result<String, Refusal> {
    let mut content = Vec::new();
    let read = from.take(LARGEST + 1).read_to_end(&mut content);
    read.map_err(|error| Refusal::new(format!("cannot read {shown}: {error}")))?;
    checked(content, shown)
}

fn checked(content: Vec<u8>, shown: &str) -> Result<String, Refusal> {
    if content.len() as u64 > LARGEST {
        return Err(Refusal::new(format!("{shown} has more than 1 MiB")));
    }
    String::from_utf8(content).map_err(|_| Refusal::new(format!("{shown} is not UTF-8 text")))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use tempfile::TempDir;

    use super::*;
    use crate::app::testing;
    use crate::core::agent::launch::Launch;
    use crate::core::requests::question_form::Form;
    use crate::store::testing::new;
    use crate::store::{self, NewFrame, Store};

    /// An agent that works in its own directory, in this permission mode.
    fn agent(store: &Store, mode: &str) -> (TempDir, Caller) {
        let temp = tempfile::tempdir().unwrap();
        let cwd = fs::canonicalize(temp.path()).unwrap();
        let launch = Launch { permission_mode: Some(mode.to_owned()), ..Launch::default() };
        let caller = store.start(store.create_root(&NewFrame { cwd, launch, ..new("a task") }).unwrap());
        (temp, caller)
    }

    fn asked(
        store: &Store,
        (temp, caller): &(TempDir, Caller),
        input: Input,
        typed: &str,
    ) -> Result<Vec<Form>, String> {
        let app = App { directory: fs::canonicalize(temp.path()).unwrap(), ..testing::app(store) };
        match request(&app, *caller, input, &mut typed.as_bytes()) {
            Ok(AgentRequest::Ask(forms)) => Ok(forms),
            Ok(AgentRequest::AskInFile(_, form)) => Ok(vec![*form]),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    fn question(text: &str) -> Input {
        Input { question: Some(GivenText::Text(text.into())), ..Input::default() }
    }

    fn with_context(context: GivenText) -> Input {
        Input { context: Some(context), ..question("When?") }
    }

    #[test]
    fn a_question_is_a_text_or_standard_input() {
        let (_temp, store) = store::testing::store();
        let agent = agent(&store, "acceptEdits");
        let forms = asked(&store, &agent, question("When?\n"), "").unwrap();
        assert_eq!(forms[0].question, "When?\n");
        let typed = Input { question: Some(GivenText::StandardInput), ..Input::default() };
        assert_eq!(asked(&store, &agent, typed.clone(), "Where?\n\n").unwrap()[0].question, "Where?");
        let large = "x".repeat(LARGEST as usize + 1);
        assert_eq!(asked(&store, &agent, typed.clone(), &large).unwrap_err(), "standard input has more than 1 MiB");
        assert_eq!(asked(&store, &agent, typed, &large[1..]).unwrap().len(), 1);
        assert!(asked(&store, &agent, Input::default(), "").is_err(), "there is no question");
    }

    #[test]
    fn the_context_is_a_text_or_a_file_of_the_agent() {
        let (_temp, store) = store::testing::store();
        let agent = agent(&store, "acceptEdits");
        let folder = agent.0.path();
        fs::write(folder.join("log.txt"), "It failed.").unwrap();
        fs::write(folder.join("bytes"), [0xff]).unwrap();
        let context =
            |given| asked(&store, &agent, with_context(given), "").map(|mut forms| forms.remove(0).context.unwrap());
        let file = |path: &str| GivenText::File(path.into());
        assert_eq!(context(GivenText::Text("@".into())).unwrap(), "@");
        assert_eq!(context(file("log.txt")).unwrap(), "It failed.");
        assert_eq!(context(file("bytes")).unwrap_err(), "bytes is not UTF-8 text");
        assert_eq!(context(file(".")).unwrap_err(), ". is not a regular file");
        assert!(context(file("gone")).unwrap_err().starts_with("cannot read gone: "));
    }

    #[test]
    fn only_an_agent_without_limits_shows_files_from_elsewhere() {
        let (_temp, store) = store::testing::store();
        let elsewhere = tempfile::tempdir().unwrap();
        let secret = elsewhere.path().join("secret");
        fs::write(&secret, "s3cret").unwrap();
        let link = |agent: &(TempDir, Caller)| {
            std::os::unix::fs::symlink(&secret, agent.0.path().join("link")).unwrap();
            with_context(GivenText::File("link".into()))
        };
        let limited = agent(&store, "acceptEdits");
        let refused = asked(&store, &limited, link(&limited), "").unwrap_err();
        assert_eq!(refused, "link is outside your directory, so it cannot be shown to a person");
        let free = agent(&store, "bypassPermissions");
        assert_eq!(asked(&store, &free, link(&free), "").unwrap()[0].context.as_deref(), Some("s3cret"));
    }

    #[test]
    fn several_questions_come_from_a_file_or_standard_input() {
        let (_temp, store) = store::testing::store();
        let agent = agent(&store, "acceptEdits");
        let json = r#"[{"question": "When?"}, {"question": "Where?"}]"#;
        fs::write(agent.0.path().join("questions.json"), json).unwrap();
        for given in [GivenText::StandardInput, GivenText::File("questions.json".into()), GivenText::Text(json.into())]
        {
            let form = FormInput { expires: Some("1h".into()), ..FormInput::default() };
            let input = Input { questions: Some(given), form, ..Input::default() };
            let forms = asked(&store, &agent, input, json).unwrap();
            assert_eq!(forms.iter().map(|form| form.question.as_str()).collect::<Vec<_>>(), ["When?", "Where?"]);
            assert!(forms.iter().all(|form| form.expires_at.is_some() && form.batch.is_some()));
        }
    }

    #[test]
    fn a_file_is_asked_with_where_the_agent_works() {
        let (_temp, store) = store::testing::store();
        let agent = agent(&store, "acceptEdits");
        store.dir().open_output(agent.1.frame).unwrap();
        let folder = fs::canonicalize(agent.0.path()).unwrap();
        fs::write(folder.join("q.md"), "When?\n").unwrap();
        let in_file = |input: Input| asked(&store, &agent, Input { file: Some("q.md".into()), ..input }, "");
        let form = in_file(Input::default()).unwrap().remove(0);
        assert_eq!((form.question.trim(), form.file), ("When?", Some(folder.join("q.md"))));
        let outside = Input { file: Some("../q.md".into()), ..question("When?") };
        assert_eq!(
            asked(&store, &agent, outside, "").unwrap_err(),
            "cannot ask with ../q.md: it is outside your directory"
        );
        let form = FormInput { expires: Some("soon".into()), ..FormInput::default() };
        assert!(in_file(Input { form, ..question("When?") }).unwrap_err().starts_with("--expires"));
    }

    #[test]
    fn an_agent_that_is_not_recorded_asks_nothing() {
        let (_temp, store) = store::testing::store();
        let mut agent = agent(&store, "acceptEdits");
        agent.1.frame = crate::core::id::FrameId::random();
        assert!(asked(&store, &agent, question("When?"), "").unwrap_err().starts_with("the calling agent, "));
    }
}

//! The actions that a person can take on the page. They are the same operations as the commands.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::app::answer;
use crate::app::chains::{in_background, remove, rename, resume, stop, tell};
use crate::app::error::{AppError, Refusal};
use crate::app::lists::questions;
use crate::app::spawn::in_background::{self as new_chain, Described, Surroundings};
use crate::core::id::{FrameId, RequestId};
use crate::core::requests::request::RequestKind;
use crate::core::steering::stop_order::StopKind;
use crate::page::state::{self, Page, Visitor};
use crate::page::{Host, Problem, ProblemKind};

/// The submitted fields of a form.
struct Fields(Vec<(String, String)>);

impl Fields {
    /// A field's text, unless it is blank.
    fn text(&self, name: &str) -> Option<String> {
        self.all(name).find(|text| !text.trim().is_empty()).map(str::to_owned)
    }

    fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(other, _)| other == name).map(|(_, value)| value.as_str())
    }
}

/// Does what a form asks for, and redirects back to the form's page.
pub(super) async fn act<H: Host>(
    State(page): State<Arc<Page<H>>>,
    Extension(visitor): Extension<Visitor>,
    request: Request,
) -> Response {
    if page.read_only {
        let words = "this page is read-only\nhint: start agent-cli serve without --read-only".to_owned();
        return state::refused(&Problem { kind: ProblemKind::Refused, words });
    }
    let path: Vec<String> = request.uri().path().split('/').skip(1).map(str::to_owned).collect();
    let fields = match state::fields(request).await {
        Ok(fields) => Fields(fields),
        Err(response) => return response,
    };
    let done = page.decide(&visitor, move |app, surroundings| {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let leads_to = run(app, surroundings, &path, &fields)?;
        Ok(leads_to.or_else(|| fields.text("back").filter(|back| is_own(back))).unwrap_or_else(|| "/".to_owned()))
    });
    match done.await {
        Ok(back) => (StatusCode::SEE_OTHER, [(LOCATION, back)]).into_response(),
        Err(problem) => state::refused(&problem),
    }
}

/// Whether an address belongs to this server.
fn is_own(back: &str) -> bool {
    back.starts_with('/') && !back.starts_with("//") && back.chars().all(|c| c.is_ascii_graphic() && c != '\\')
}

/// Runs the action. Returns the address to redirect to, if it is not the form's page.
fn run(
    app: &App<'_>,
    surroundings: &impl Surroundings,
    path: &[&str],
    fields: &Fields,
) -> Result<Option<String>, AppError> {
    let unknown = || Refusal::unknown("there is no such action");
    match path {
        ["start"] => return start(app, surroundings, fields).map(|root| Some(format!("/chain/{root}"))),
        ["question", id, "answer"] => answer(app, surroundings, id.parse().map_err(|_| unknown())?, fields)?,
        ["chain", id, "remove"] => {
            let root = remove::chain(app, &whole(id)?)?.root;
            remove::remove(app, remove::Input { root, ignored: false })?;
        }
        ["chain", id, "name"] => {
            let name = new_chain::name(&fields.text("name").unwrap_or_default())?;
            rename::rename(app, &whole(id)?, Some(name))?;
        }
        ["agent", id, "stop"] => drop(stop::stop(app, stop::Input::new(whole(id)?, StopKind::Stop))?),
        ["agent", id, "pause"] => drop(stop::stop(app, stop::Input::new(whole(id)?, StopKind::Pause))?),
        ["agent", id, "tell"] => {
            let text = fields.text("text").unwrap_or_default();
            tell::tell(app, tell::Input { id: whole(id)?, text: Box::new(move || Ok(text)) })?;
        }
        ["agent", id, "resume"] => {
            in_background::resume(app, resume::Input::new(whole(id)?, fields.text("text")), surroundings)?;
        }
        _ => return Err(unknown().into()),
    }
    Ok(None)
}

/// Parses an id from the page: the full id of an agent.
fn whole(id: &str) -> Result<String, Refusal> {
    let id: FrameId = id.parse().map_err(|_| Refusal::unknown("there is no such agent"))?;
    Ok(id.to_string())
}

fn start(app: &App<'_>, surroundings: &impl Surroundings, fields: &Fields) -> Result<FrameId, AppError> {
    let path = |name: &str| fields.text(name).map(|path| PathBuf::from(path.trim()));
    let described = Described {
        prompt: fields.text("prompt"),
        files: path("file").into_iter().collect(),
        directory: path("directory"),
        name: fields.text("name"),
        model: fields.text("model").map(|model| model.trim().to_owned()),
        budget: fields.text("budget"),
        worktree: None,
    };
    new_chain::spawn(app, described.input()?, surroundings)
}

fn answer(
    app: &App<'_>,
    surroundings: &impl Surroundings,
    question: RequestId,
    fields: &Fields,
) -> Result<(), AppError> {
    let asked = questions::asked(app, question)?;
    let decision = fields.text("decision").unwrap_or_default();
    let text = match (&asked.kind, decision.as_str()) {
        (RequestKind::Ask(form), _) => fields.text("text").unwrap_or_else(|| {
            let at = |value: &str| value.parse::<usize>().ok().and_then(|at| form.options.get(at));
            let keys: Vec<_> = fields.all("option").filter_map(at).map(|option| option.key.as_str()).collect();
            keys.join(", ")
        }),
        (_, "deny") => answer::denial(fields.text("reason").as_deref()),
        (_, allow) => allow.to_owned(),
    };
    if text.trim().is_empty() {
        return Err(Refusal::new("nothing was answered").into());
    }
    let shown = fields.text("shown").unwrap_or_default();
    let recorded = answer::answer(app, &answer::Input::entered(question, text, Some(shown)))?;
    if fields.text("resume").is_some() {
        in_background::after_answer(app, recorded.chain, surroundings)?;
    }
    Ok(())
}

//! What a person does on the page: the same operations as the commands.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};

use crate::app::answer;
use crate::app::chains::{in_background, remove, rename, resume, stop, tell};
use crate::app::error::{AppError, Refusal};
use crate::app::spawn::in_background::Surroundings;
use crate::app::spawn::{self};
use crate::app::{App, GivenText};
use crate::core::agent::launch::OnPermission;
use crate::core::agent::overrides::Repair;
use crate::core::chain::limits::{self, NewLimits};
use crate::core::id::{BadName, ChainName, FrameId, RequestId};
use crate::core::requests::request::RequestKind;
use crate::core::steering::stop_order::StopKind;
use crate::page::state::{self, Page, Visitor};
use crate::page::{Host, Problem, ProblemKind};

/// The fields of a form.
struct Fields(Vec<(String, String)>);

impl Fields {
    /// A text that says something.
    fn text(&self, name: &str) -> Option<String> {
        self.all(name).find(|text| !text.trim().is_empty()).map(str::to_owned)
    }

    fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let name = name.to_owned();
        self.0.iter().filter(move |(other, _)| *other == name).map(|(_, value)| value.as_str())
    }
}

/// Does what a form asks for, and leads back to where it was.
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
    let done = page.run(&visitor, move |app, surroundings| {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let leads_to = run(app, surroundings, &path, &fields)?;
        Ok(leads_to.or_else(|| fields.text("back").filter(|back| is_own(back))).unwrap_or_else(|| "/".to_owned()))
    });
    match done.await {
        Ok(back) => (StatusCode::SEE_OTHER, [(LOCATION, back)]).into_response(),
        Err(problem) => state::refused(&problem),
    }
}

/// Whether an address is one of this server's.
fn is_own(back: &str) -> bool {
    back.starts_with('/') && !back.starts_with("//") && back.chars().all(|c| c.is_ascii_graphic() && c != '\\')
}

/// Returns where it leads to, if not back.
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
            let name = fields.text("name").unwrap_or_default();
            rename::rename(app, &whole(id)?, chain_name(&name)?)?;
        }
        ["agent", id, "stop"] => stop(app, whole(id)?, StopKind::Stop)?,
        ["agent", id, "pause"] => stop(app, whole(id)?, StopKind::Pause)?,
        ["agent", id, "tell"] => {
            let text = fields.text("text").unwrap_or_default();
            tell::tell(app, tell::Input { id: whole(id)?, text: Box::new(move || Ok(text)) })?;
        }
        ["agent", id, "resume"] => {
            let input = resume::Input {
                id: whole(id)?,
                limits: NewLimits::default(),
                repair: Repair::default(),
                prompt: fields.text("text").map(|text| -> tell::DeferredText { Box::new(move || Ok(text)) }),
                afresh: false,
                now: false,
                stale_check: true,
            };
            in_background::resume(app, input, surroundings)?;
        }
        _ => return Err(unknown().into()),
    }
    Ok(None)
}

/// An id as the page has it: a whole one, of an agent.
fn whole(id: &str) -> Result<String, Refusal> {
    let id: FrameId = id.parse().map_err(|_| Refusal::unknown("there is no such agent"))?;
    Ok(id.to_string())
}

fn chain_name(text: &str) -> Result<ChainName, Refusal> {
    text.trim().parse().map_err(|error: BadName| Refusal::new(error.to_string()))
}

fn stop(app: &App<'_>, id: String, kind: StopKind) -> Result<(), AppError> {
    stop::stop(app, stop::Input { id, kind, now: false, reason: None, waits: None })?;
    Ok(())
}

fn start(app: &App<'_>, surroundings: &impl Surroundings, fields: &Fields) -> Result<FrameId, AppError> {
    let file = fields.text("file").map(|file| GivenText::File(PathBuf::from(file.trim())));
    let tasks: Vec<_> = file.into_iter().chain(fields.text("prompt").map(GivenText::Text)).collect();
    if tasks.is_empty() {
        return Err(Refusal::new("there is neither a prompt nor a file").into());
    }
    let input = spawn::Input {
        tasks,
        cwd: fields.text("directory").map(|directory| PathBuf::from(directory.trim())),
        name: fields.text("name").map(|name| chain_name(&name)).transpose()?,
        model: fields.text("model").map(|model| model.trim().to_owned()),
        limits: NewLimits {
            max_budget_usd: fields
                .text("budget")
                .map(|usd| {
                    limits::budget_in(&usd).map_err(|wanted| Refusal::new(format!("the budget must be {wanted}")))
                })
                .transpose()?,
            ..NewLimits::default()
        },
        // The inbox asks the person.
        on_permission: Some(OnPermission::Ask),
        ..spawn::Input::default()
    };
    spawn::in_background::spawn(app, input, surroundings)
}

fn answer(
    app: &App<'_>,
    surroundings: &impl Surroundings,
    question: RequestId,
    fields: &Fields,
) -> Result<(), AppError> {
    let unknown = || Refusal::unknown("there is no such question; its chain may have been removed");
    let asked = app.store.questions(question, false)?.pop().ok_or_else(unknown)?;
    let decision = fields.text("decision").unwrap_or_default();
    let text = match (&asked.kind, decision.as_str()) {
        (RequestKind::Ask(form), _) => match fields.text("text") {
            Some(text) => text,
            None => {
                let at = |value: &str| value.parse::<usize>().ok().and_then(|at| form.options.get(at));
                let keys: Vec<_> = fields.all("option").filter_map(at).map(|option| option.key.as_str()).collect();
                keys.join(", ")
            }
        },
        (_, "deny") => match fields.text("reason") {
            Some(reason) => format!("deny {reason}"),
            None => "deny".to_owned(),
        },
        (_, allow) => allow.to_owned(),
    };
    if text.trim().is_empty() {
        return Err(Refusal::new("nothing was answered").into());
    }
    let shown = Some(fields.text("shown").unwrap_or_default());
    let input = answer::Input { question, text, is_verbatim: true, mode: None, replace: false, shown };
    let recorded = answer::answer(app, &input)?;
    if fields.text("resume").is_some() {
        in_background::go_on(app, recorded.chain, surroundings)?;
    }
    Ok(())
}

//! Handles the client's requests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CancelTaskParams, ContentBlock, CreateTaskResult,
    ErrorCode, GetTaskParams, GetTaskResult, Implementation, InitializeResult, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, UpdateTaskParams,
};
use rmcp::service::{RequestContext, RoleServer};

use crate::app::App;
use crate::app::chains::in_background;
use crate::app::error::AppError;
use crate::app::fronts::task::{self, ChainTask, TaskState};
use crate::core::id::FrameId;
use crate::mcp::tools::Output;
use crate::mcp::{Host, tasks, tools};
use crate::store::Followed;

pub(super) struct Server<H> {
    host: H,
    paces: Arc<Paces>,
}

#[derive(Default)]
struct Paces {
    /// When this server last continued each chain. A chain that waits for a command can always continue.
    continued: Mutex<HashMap<FrameId, Instant>>,
    /// The marks of the chains that the client follows, and when it last asked about them.
    followed: Mutex<HashMap<FrameId, (Followed, Instant)>>,
}

/// A client that has not asked about a chain for this long no longer follows it. Claude Code asks every few seconds.
const FOLLOWS: Duration = Duration::from_secs(60);

/// The shortest pause before the server continues the same chain again.
const REST: Duration = Duration::from_secs(10);

impl Paces {
    fn rests(&self, root: FrameId) -> bool {
        lock(&self.continued).get(&root).is_some_and(|last| last.elapsed() < REST)
    }

    fn continued(&self, root: FrameId) {
        let mut known = lock(&self.continued);
        known.retain(|_, last| last.elapsed() < REST);
        known.insert(root, Instant::now());
    }

    /// Marks the chain as followed. Without a mark, the session may be told twice.
    fn follow(&self, app: &App<'_>, root: FrameId) {
        let mut followed = lock(&self.followed);
        match followed.get_mut(&root) {
            Some((_, last)) => *last = Instant::now(),
            None => {
                let mark = Followed::mark(app.store.dir(), root).ok();
                followed.extend(mark.map(|mark| (root, (mark, Instant::now()))));
            }
        }
    }

    fn unfollow(&self, root: FrameId) {
        lock(&self.followed).remove(&root);
    }

    fn forget(&self) {
        lock(&self.followed).retain(|_, (_, last)| last.elapsed() < FOLLOWS);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<H: Host> Server<H> {
    pub(super) fn new(host: H) -> Self {
        Self { host, paces: Arc::default() }
    }

    /// Stops following chains about which the client no longer asks, as long as this runs.
    pub(super) fn forget_followed(&self) -> impl Future<Output = ()> + use<H> {
        let paces = Arc::clone(&self.paces);
        async move {
            loop {
                tokio::time::sleep(FOLLOWS / 4).await;
                paces.forget();
            }
        }
    }

    /// Runs `work` without blocking other messages.
    async fn run<T: Send + 'static>(
        &self,
        context: &RequestContext<RoleServer>,
        work: impl FnOnce(&App<'_>, &H::Surroundings) -> Result<T, AppError> + Send + 'static,
    ) -> Result<Result<T, String>, ErrorData> {
        if self.host.is_of_agent() {
            return Err(ErrorData::new(ErrorCode::INVALID_REQUEST, "agents of a chain use the command line", None));
        }
        let client = context.client_info().map(|client| format!("{} {}", client.name, client.version));
        let host = self.host.clone();
        let done = tokio::task::spawn_blocking(move || host.run(client, work)).await;
        done.map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    /// Like [`Self::run`], for a task. Errors become errors of the protocol.
    async fn of_task<T: Send + 'static>(
        &self,
        task: String,
        context: &RequestContext<RoleServer>,
        work: impl FnOnce(&App<'_>, FrameId, &H::Surroundings) -> Result<T, AppError> + Send + 'static,
    ) -> Result<T, ErrorData> {
        let done =
            self.run(context, move |app, surroundings| work(app, task::chain_of(app, &task)?, surroundings)).await?;
        done.map_err(|message| ErrorData::invalid_params(message, None))
    }
}

impl<H: Host> ServerHandler for Server<H> {
    fn get_info(&self) -> InitializeResult {
        let capabilities = if self.host.is_of_agent() {
            ServerCapabilities::builder().enable_tools().build()
        } else {
            ServerCapabilities::builder().enable_tools().enable_tasks().build()
        };
        let own = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        InitializeResult::new(capabilities).with_server_info(own)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // An agent's requests must not depend on this server.
        let tools = if self.host.is_of_agent() { Vec::new() } else { tools::tools() };
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (name, arguments) = (request.name, request.arguments.unwrap_or_default());
        let has_tasks = context.client_capabilities().is_some_and(|client| client.supports_tasks());
        let paces = Arc::clone(&self.paces);
        let called = self
            .run(&context, move |app, surroundings| match tools::call(app, surroundings, &name, arguments)? {
                Output::Value(value) => Ok(said(value.to_string())),
                Output::Chain(root) if has_tasks => {
                    paces.follow(app, root);
                    Ok(CallToolResponse::Task(CreateTaskResult::new(tasks::task(app, root)?.task)))
                }
                Output::Chain(root) => Ok(said(in_words(root, task::read(app, root)?))),
            })
            .await?;
        Ok(called.unwrap_or_else(|message| CallToolResult::error(vec![ContentBlock::text(message)]).into()))
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let paces = Arc::clone(&self.paces);
        let look = move |app: &App<'_>, root, surroundings: &H::Surroundings| {
            if !paces.rests(root) {
                match in_background::go_on(app, root, surroundings) {
                    Ok(true) => paces.continued(root),
                    Ok(false) => {}
                    // The client still learns the state.
                    Err(error) => tracing::warn!("{}: {error}", root.short()),
                }
            }
            paces.follow(app, root);
            tasks::task(app, root)
        };
        self.of_task(request.task_id, &context, look).await.map(GetTaskResult::new)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let responses = request.input_responses;
        self.of_task(request.task_id, &context, move |app, root, surroundings| {
            task::update(app, root, &responses, surroundings)
        })
        .await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let paces = Arc::clone(&self.paces);
        self.of_task(request.task_id, &context, move |app, root, _| {
            paces.unfollow(root);
            task::cancel(app, root)
        })
        .await
    }
}

fn said(text: String) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

/// Describes a chain for a client without tasks, and says how to check on it.
fn in_words(root: FrameId, ChainTask { state, message, .. }: ChainTask) -> String {
    let (id, checks) = (root.short(), "to check on it, call chains, questions or tree");
    match state {
        TaskState::Works | TaskState::Asks(_) => format!(
            "chain {root}: {message}\nit continues in the background; {checks}; its id is {id}; once it is done, resume with \
             this id returns its reply"
        ),
        TaskState::Replied(reply) => format!("chain {root} is done. Its reply:\n{reply}"),
        TaskState::PartlyFailed(replies) => format!("chain {root}: {message}. Its replies:\n{replies}"),
        TaskState::Failed(why) => format!("chain {root} has failed: {why}"),
        TaskState::Stopped => format!("chain {root}: {message}\nresume with a prompt continues it"),
    }
}

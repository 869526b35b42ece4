//! Reports the news of a project's chains to an idle session. Each line can cost a request of the session's model, so there
//! is one line for each new question and each chain that ends, and no other.

use std::collections::HashSet;

use jiff::Timestamp;

use crate::app::App;
use crate::app::error::AppError;
use crate::app::lists::project::Selection;
use crate::app::lists::questions::{self, Input};
use crate::core::chain::frame_state::{FailureKind, FrameState};
use crate::core::id::{FrameId, RequestId};
use crate::core::requests::approval;
use crate::core::requests::request::RequestKind;
use crate::core::text::escape::shortened;
use crate::store::{Chains, Followed, Question, Summary};

/// The news that has been reported already.
#[derive(Debug)]
pub(crate) struct News {
    questions: HashSet<RequestId>,
    ended: HashSet<(FrameId, Timestamp)>,
    /// Chains that ended before this time are not news.
    since: Timestamp,
}

/// The number of questions that are listed one by one. If there are more, only their number is reported.
const MOST: usize = 5;

impl News {
    pub(crate) fn new(since: Timestamp) -> Self {
        Self { questions: HashSet::new(), ended: HashSet::new(), since }
    }

    /// Returns the news since the last call. The first call reports the open questions. A chain that a session follows as its
    /// task is left out, because that session is told anyway.
    pub(crate) fn next(&mut self, app: &App<'_>) -> Result<Vec<String>, AppError> {
        let is_followed = |root| Followed::is_marked(app.store.dir(), root).unwrap_or(false);
        let mut open = questions::questions(app, &Input::default())?.questions;
        open.retain(|asked| !is_followed(asked.root));
        self.questions.retain(|known| open.iter().any(|asked| asked.id == *known));
        let mut asked: Vec<_> =
            open.iter().filter(|asked| self.questions.insert(asked.id)).map(|asked| question(app, asked)).collect();
        if asked.len() > MOST {
            asked = vec![format!("agent-cli: {} questions are open; agent-cli questions lists them", asked.len())];
        }
        let mut selection = Selection::new(app, false)?;
        let ended = app.store.chains(Chains::EndedSince { since: self.since, most: 100 })?.chains;
        let new = ended.into_iter().filter(|chain| selection.includes(&chain.cwd));
        let new = new.filter(|chain| self.ended.insert((chain.id, chain.since)) && !is_followed(chain.id));
        asked.extend(new.map(|chain| end(&chain)).take(MOST));
        Ok(asked)
    }
}

fn question(app: &App<'_>, asked: &Question) -> String {
    let what = match &asked.kind {
        RequestKind::Permission { tool, input, .. } => {
            format!("needs approval: {}", quoted(&approval::summary(tool, input)))
        }
        RequestKind::Plan(_) => "needs approval of its plan".to_owned(),
        _ => format!("asks: {}", quoted(&asked.question)),
    };
    let name = app.store.chain_of(asked.root).ok().and_then(|chain| chain.name);
    let of = name.unwrap_or_else(|| quoted(&asked.title));
    format!("agent-cli: {of} ({}) {what}", asked.id.short())
}

/// Quotes an agent's words. The model of the person's session must see where they end, because they are not instructions.
fn quoted(text: &str) -> String {
    format!("\"{}\"", shortened(text).replace('"', "'"))
}

fn end(chain: &Summary) -> String {
    let name = chain.name.clone().unwrap_or_else(|| quoted(&chain.title));
    let how = match &chain.state {
        FrameState::Failed { failure } if failure.kind == FailureKind::Stopped => {
            format!("has ended: {}", quoted(&failure.message))
        }
        FrameState::Failed { failure } => format!("has failed: {}", quoted(&failure.message)),
        _ => "is done".to_owned(),
    };
    format!("agent-cli: the chain {name} ({}) {how}", chain.id.short())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::testing;
    use crate::store::testing::{ask, new, refused, reply, store};

    #[test]
    fn each_question_and_each_end_is_said_once() {
        let (_temp, store) = store();
        let app = testing::app(&store);
        let chain =
            |cwd: &str| store.create_root(&crate::store::NewFrame { cwd: cwd.into(), ..new("a task") }).unwrap();
        let mut news = News::new(Timestamp::UNIX_EPOCH);
        assert_eq!(news.next(&app).unwrap(), [""; 0]);
        let asks = store.start(chain("/"));
        let question = store.request(asks, None, &[ask("When\u{1b}?\"")]).unwrap()[0];
        store.request(store.start(chain("/elsewhere")), None, &[ask("Where?")]).unwrap();
        let expected = format!("agent-cli: \"a task\" ({}) asks: \"When\\u{{1b}}?'\"", question.short());
        assert_eq!(news.next(&app).unwrap(), std::slice::from_ref(&expected));
        assert_eq!(news.next(&app).unwrap(), [""; 0]);
        assert_eq!(News::new(Timestamp::UNIX_EPOCH).next(&app).unwrap(), [expected], "said again by the next monitor");
        let (done, failed) = (chain("/"), chain("/"));
        store.end(store.start(done), &reply("fine"));
        store.end(store.start(failed), &refused("no"));
        let said = news.next(&app).unwrap();
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(said.contains(&format!("agent-cli: the chain \"a task\" ({}) is done", done.short())), "{said:?}");
        assert!(said.iter().any(|line| line.contains("has failed: ")), "{said:?}");
        assert_eq!(news.next(&app).unwrap(), [""; 0]);
    }

    #[test]
    fn the_session_that_follows_a_chain_is_not_told_twice() {
        let (_temp, store) = store();
        let app = testing::app(&store);
        let root = store.create_root(&crate::store::NewFrame { cwd: "/".into(), ..new("a task") }).unwrap();
        let caller = store.start(root);
        store.request(caller, None, &[ask("When?")]).unwrap();
        store.dir().frame_dir(root).unwrap();
        let followed = Followed::mark(store.dir(), root).unwrap();
        let mut news = News::new(Timestamp::UNIX_EPOCH);
        assert_eq!(news.next(&app).unwrap(), [""; 0]);
        drop(followed);
        assert_eq!(news.next(&app).unwrap().len(), 1, "that session has ended");
    }
}

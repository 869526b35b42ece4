//! Lists notifications, and whether they could be sent.

use std::path::Path;

use crate::app::asker::PersonsTask;
use crate::app::error::{AppError, Refusal};
use crate::app::view::outcome::{NotificationTestView, NotificationView};
use crate::app::{App, Asker};
use crate::core::notifications::occasion::Occasion;
use crate::runtime::notifications::config_file::ConfigFile;
use crate::runtime::notifications::sender;
use crate::store::Notifications;

/// Lists the newest notifications, at most this many. The newest comes last.
pub(crate) fn notifications(app: &App<'_>, most: usize) -> Result<Vec<NotificationView>, AppError> {
    app.asker.may(PersonsTask::SeeNotifications)?;
    let listed = app.store.outbox().list(Notifications::Newest(most))?;
    Ok(listed.into_iter().map(NotificationView::from).collect())
}

/// Runs the command for an event once, with an example.
pub(crate) fn try_out(
    asker: &Asker,
    state_dir: &Path,
    config: &ConfigFile,
    own_program: &Path,
    event: Occasion,
) -> Result<NotificationTestView, AppError> {
    asker.may(PersonsTask::SeeNotifications)?;
    let outcome = sender::try_out(state_dir, config, own_program, event).ok_or_else(|| {
        Refusal::failure(format!("{} has no command for {}", config.path.display(), event.name()))
            .hint(format!("add one: [on] {} = \"…\"", event.name()))
    })?;
    let why = outcome.err();
    Ok(NotificationTestView { event, sent: why.is_none(), why })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::testing;
    use crate::core::notifications::event_commands;
    use crate::store::testing::store;

    #[test]
    fn agents_are_refused() {
        let (_temp, store) = store();
        assert!(notifications(&testing::app(&store), 9).unwrap().is_empty());
        let caller = store.start(store.root());
        let agent = testing::app_of(&store, caller);
        let refused = notifications(&agent, 9).unwrap_err();
        assert_eq!(refused.to_string(), "agents cannot see or send notifications");
        let config = ConfigFile {
            path: "/c.toml".into(),
            commands: event_commands::parse("").unwrap().commands,
            problems: Vec::new(),
        };
        let try_out = |asker: &Asker| {
            let dir = store.dir().path();
            try_out(asker, dir, &config, Path::new("/bin/agent-cli"), Occasion::Done).unwrap_err().to_string()
        };
        assert_eq!(try_out(&agent.asker), "agents cannot see or send notifications");
        assert_eq!(try_out(&Asker::default()), "/c.toml has no command for done");
    }
}

//! Plans that a person has approved, and the permission mode that they chose.

use crate::core::id::FrameId;
use crate::core::requests::plan::Decided;
use crate::core::requests::request::RequestKind;
use crate::store::database::codec::{Id, from_json};
use crate::store::database::store::Store;
use crate::store::error::Result;

impl Store {
    /// The permission mode that a person chose for the frame's last plan whose approval was delivered.
    pub fn chosen_mode(&self, frame: FrameId) -> Result<Option<String>> {
        self.query(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT r.detail, a.answer FROM requests AS r JOIN answers AS a ON a.question = r.id
                 WHERE r.frame = ?1 AND r.status = 'delivered' ORDER BY r.seq DESC",
            )?;
            let answered = statement.query_map([Id(frame)], |row| {
                Ok((from_json::<RequestKind>(row, "detail")?, row.get::<_, String>("answer")?))
            })?;
            for answered in answered {
                if let (RequestKind::Plan(plan), answer) = answered?
                    && let Some(Decided::Approved { mode }) = plan.decided(&answer)
                {
                    return Ok(Some(mode));
                }
            }
            Ok(None)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::attempt::ending::Ending;
    use crate::core::requests::plan::Plan;
    use crate::store::testing::{reply, store};

    #[test]
    fn the_last_plan_that_was_approved_and_told_counts() {
        let (_temp, store) = store();
        let mut caller = store.start(store.root());
        let plan =
            || RequestKind::Plan(Plan { text: None, file: None, modes: vec!["default".into(), "acceptEdits".into()] });
        for (answer, before) in [
            ("deny", None),
            ("allow acceptEdits", None),
            ("deny not now", Some("acceptEdits")),
            ("allow", Some("acceptEdits")),
        ] {
            let asked = store.request(caller, Some("toolu_1"), &plan()).unwrap();
            store.end(caller, &Ending::Suspended);
            store.answer(asked, answer).unwrap();
            assert_eq!(store.chosen_mode(caller.frame).unwrap().as_deref(), before);
            caller = store.start(caller.frame);
        }
        store.end(caller, &reply("done"));
        assert_eq!(store.chosen_mode(caller.frame).unwrap().as_deref(), Some("default"));
    }
}

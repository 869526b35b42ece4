//! Limits how many questions a chain may ask: each is shown to a person, and may run one of their commands.

use jiff::SignedDuration;

use crate::core::id::FrameId;
use crate::core::requests::request::RequestKind;
use crate::store::error::StoreError;
use crate::store::sql::database::codec::{self, At, Id, id};
use crate::store::sql::engine::{Connection, TxResult};
use crate::store::sql::tables::chains::family;

/// The default.
const PER_HOUR: u64 = 200;
const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// Refuses more questions of a chain that has asked many within an hour. Answered questions no longer count, because the
/// person knows about the chain. Questions that agents post in files are recorded once each, at the end of their turn.
pub(crate) fn check(connection: &Connection, frame: FrameId, kinds: &[RequestKind]) -> TxResult<()> {
    let is_question = |kind: &&RequestKind| match kind {
        RequestKind::Ask(form) => form.posted.is_none(),
        RequestKind::Permission { .. } | RequestKind::Plan(_) => true,
        RequestKind::Spawn { .. } | RequestKind::Wait(_) => false,
    };
    let more = kinds.iter().filter(is_question).count() as u64;
    if more == 0 {
        return Ok(());
    }
    let most: Option<i64> =
        connection.read_one("SELECT questions_per_hour FROM frames WHERE id = ?1", [Id(frame)], |row| row.get(0))?;
    let most = most.map_or(PER_HOUR, i64::unsigned_abs);
    let root: Id<FrameId> =
        connection.read_one("SELECT root FROM frames WHERE id = ?1", [Id(frame)], |row| Ok(Id(id(row, "root")?)))?;
    const ASKED: &str = concat!(
        "SELECT count(*) FROM frames AS f JOIN requests AS r ON r.frame = f.id
         WHERE r.made > ?2 AND r.kind = 'ask' AND r.status <> 'withdrawn'
         AND NOT EXISTS (SELECT 1 FROM answers AS a WHERE a.question = r.question) AND f.root IN ",
        family!()
    );
    let since = At(codec::now().0 - HOUR);
    let asked: i64 = connection.read_one(ASKED, (root, since), |row| row.get(0))?;
    if asked.unsigned_abs() + more > most { Err(StoreError::TooManyQuestions(most).into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use crate::core::agent::launch::Launch;
    use crate::store::error::StoreError;
    use crate::store::testing::{ask, new, store};

    #[test]
    fn a_chain_asks_so_many_questions_until_a_person_answers_one() {
        let (_temp, store) = store();
        let mut root = new("root");
        root.launch = Launch { questions_per_hour: Some(3), ..root.launch };
        let caller = store.start(store.create_root(&root).unwrap());
        let asks = |count: usize| store.request(caller, None, &vec![ask("When?"); count]);
        assert_eq!(asks(2).unwrap().len(), 2);
        assert!(matches!(asks(2), Err(StoreError::TooManyQuestions(3))), "all or none");
        let last = asks(1).unwrap()[0];
        assert!(matches!(asks(1), Err(StoreError::TooManyQuestions(3))));
        store.answer(last, "now").unwrap();
        asks(1).unwrap();
        store.execute("UPDATE requests SET made = made - 3600 * 1000", []);
        asks(3).unwrap();
    }
}

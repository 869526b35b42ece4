//! Renames a chain.

use crate::app::App;
use crate::app::error::{AppError, Refusal};
use crate::app::lookup;
use crate::core::id::{ChainName, FrameId};
use crate::store::ChainChange;

pub(crate) fn rename(app: &App<'_>, id: &str, name: ChainName) -> Result<FrameId, AppError> {
    if app.asker.agent.is_some() {
        return Err(Refusal::new("agents cannot name chains").hint("leave it to a person").into());
    }
    let root = app.store.chain_of(lookup::frame_named(app, id)?)?.root;
    app.store.change_chain(root, ChainChange { name: Some(name), ..ChainChange::default() })?;
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::testing;
    use crate::store;
    use crate::store::StoreError;

    #[test]
    fn a_person_names_a_chain_by_a_name_that_no_other_has() {
        let (_temp, store) = store::testing::store();
        let app = testing::app(&store);
        let (first, second) = (store.root(), store.root());
        let name = || "door".parse::<ChainName>().unwrap();
        assert_eq!(rename(&app, &first.to_string(), name()).unwrap(), first);
        assert_eq!(store.chain_of(first).unwrap().name.as_deref(), Some("door"));
        let taken = rename(&app, &second.to_string(), name()).unwrap_err();
        assert!(matches!(taken, AppError::Store(StoreError::NameTaken { .. })), "{taken}");
        let caller = store.start(first);
        let refused = rename(&testing::app_of(&store, caller), &first.to_string(), name()).unwrap_err();
        assert_eq!(refused.to_string(), "agents cannot name chains");
    }
}

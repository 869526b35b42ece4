//! Gives a chain another name, or none.

use crate::app::App;
use crate::app::asker::PersonsTask;
use crate::app::error::AppError;
use crate::app::lookup;
use crate::app::view::outcome::NamedView;
use crate::core::id::ChainName;
use crate::store::ChainChange;

/// `name`: `None` removes the chain's name.
pub(crate) fn rename(app: &App<'_>, id: &str, name: Option<ChainName>) -> Result<NamedView, AppError> {
    app.asker.may(PersonsTask::Name)?;
    let chain = app.store.chain_of(lookup::frame_named(app, id)?)?.root;
    app.store.change_chain(chain, ChainChange { name: Some(name.clone()), ..ChainChange::default() })?;
    Ok(NamedView { chain, name: name.map(String::from) })
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
        let name = || Some("door".parse::<ChainName>().unwrap());
        assert_eq!(rename(&app, &first.to_string(), name()).unwrap().chain, first);
        assert_eq!(store.chain_of(first).unwrap().name.as_deref(), Some("door"));
        let taken = rename(&app, &second.to_string(), name()).unwrap_err();
        assert!(matches!(taken, AppError::Store(StoreError::NameTaken { .. })), "{taken}");
        assert_eq!(rename(&app, "door", None).unwrap().name, None);
        assert_eq!(store.chain_of(first).unwrap().name, None);
        rename(&app, &second.to_string(), name()).unwrap();
        let caller = store.start(first);
        let refused = rename(&testing::app_of(&store, caller), &first.to_string(), name()).unwrap_err();
        assert_eq!(refused.to_string(), "agents cannot name chains");
    }
}

//! The permission mode in which a person lets an agent continue after approving its plan.

use crate::core::agent::starting_mode::Chosen;
use crate::core::id::FrameId;
use crate::core::requests::plan::Decided;
use crate::core::requests::request::{Delivery, RequestKind};
use crate::runtime::RuntimeError;
use crate::store::Store;

/// A mode that a person chose.
pub(crate) struct ChosenMode {
    mode: String,
    /// Whether the next attempt tells the agent about it.
    is_new: bool,
}

impl ChosenMode {
    pub(crate) fn as_chosen(&self) -> Chosen<'_> {
        Chosen { mode: &self.mode, is_new: self.is_new }
    }
}

/// The mode for the next attempt of a frame, which is given `deliveries`: that of the last approved plan.
pub(crate) fn chosen(
    store: &Store,
    frame: FrameId,
    deliveries: &[Delivery],
) -> Result<Option<ChosenMode>, RuntimeError> {
    let approved = |delivery: &Delivery| match &delivery.kind {
        RequestKind::Plan(plan) => match plan.decided(delivery.result.text()) {
            Some(Decided::Approved { mode }) => Some(mode),
            Some(Decided::Refused { .. }) | None => None,
        },
        _ => None,
    };
    if let Some(mode) = deliveries.iter().rev().find_map(approved) {
        return Ok(Some(ChosenMode { mode, is_new: true }));
    }
    Ok(store.chosen_mode(frame)?.map(|mode| ChosenMode { mode, is_new: false }))
}

//! The permission mode in which a person lets an agent continue after approving its plan.

use crate::core::agent::starting_mode::Chosen;
use crate::core::requests::plan::Decided;
use crate::core::requests::request::{Delivery, RequestKind};
use crate::store::Undelivered;

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

/// The mode for the next attempt of a frame, which is given this: that of the last approved plan.
pub(crate) fn chosen(undelivered: &Undelivered) -> Option<ChosenMode> {
    let approved = |delivery: &Delivery| match &delivery.kind {
        RequestKind::Plan(plan) => match plan.decided(delivery.result.text()) {
            Some(Decided::Approved { mode }) => Some(mode),
            Some(Decided::Refused { .. }) | None => None,
        },
        _ => None,
    };
    let new = undelivered.results.iter().rev().find_map(approved).map(|mode| ChosenMode { mode, is_new: true });
    new.or_else(|| undelivered.chosen_mode.clone().map(|mode| ChosenMode { mode, is_new: false }))
}

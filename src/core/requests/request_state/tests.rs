//! Every state with every event.

use proptest::prelude::*;
use uuid::Uuid;

use super::*;

fn id(n: u128) -> AttemptId {
    AttemptId(Uuid::from_u128(n))
}

fn deliver(n: u128) -> RequestEvent {
    RequestEvent::Deliver { attempt: id(n), handover: Handover::Given, of_child: false }
}

fn delivering(resolved: bool, handover: Handover, used_by: Option<AttemptId>) -> RequestState {
    RequestState::Delivering { attempt: id(1), resolved, handover, used_by, expired: false }
}

const RESOLVED: RequestState = RequestState::Resolved { used_by: None };

fn used() -> RequestState {
    RequestState::Resolved { used_by: Some(id(1)) }
}

#[test]
fn every_state_has_its_events() {
    use RequestEvent::{Expire, GiveBack, Keep, Replace, Resolve, Return, Show, Use, Withdraw};
    use RequestState::{Delivered, Expired, Open, Withdrawn};
    let of_child = RequestEvent::Deliver { attempt: id(1), handover: Handover::Given, of_child: true };
    let to_return = RequestEvent::Deliver { attempt: id(1), handover: Handover::ToReturn, of_child: false };
    let uses = |n| Use { attempt: id(n) };
    let given = delivering(true, Handover::Given, None);
    let delivered = |used_by| Delivered { attempt: id(1), used_by, expired: false };
    let expired_given =
        |handover| RequestState::Delivering { attempt: id(1), resolved: true, handover, used_by: None, expired: true };
    let rows = [
        (Open, Resolve, Some(RESOLVED)),
        (Open, of_child, Some(delivering(false, Handover::Given, None))),
        (Open, deliver(1), None),
        (Open, Withdraw, Some(Withdrawn)),
        (Open, Replace, None),
        (Open, uses(1), None),
        (Open, Keep, None),
        (Open, GiveBack, None),
        (RESOLVED, Resolve, None),
        (RESOLVED, Replace, Some(RESOLVED)),
        (RESOLVED, deliver(1), Some(given.clone())),
        (RESOLVED, to_return, Some(delivering(true, Handover::ToReturn, None))),
        (RESOLVED, uses(1), Some(used())),
        (RESOLVED, Withdraw, Some(Withdrawn)),
        (RESOLVED, Show, None),
        (RESOLVED, Keep, None),
        (used(), Replace, None),
        (used(), uses(1), Some(used())),
        (used(), uses(2), None),
        (used(), deliver(1), Some(delivering(true, Handover::Given, Some(id(1))))),
        (given.clone(), deliver(1), Some(given.clone())),
        (given.clone(), deliver(2), None),
        (given.clone(), Resolve, None),
        (given.clone(), Replace, None),
        (given.clone(), Return, Some(given.clone())),
        (delivering(true, Handover::ToReturn, None), Return, Some(delivering(true, Handover::Returned, None))),
        (delivering(true, Handover::ByInput, None), Return, Some(delivering(true, Handover::Returned, None))),
        (delivering(true, Handover::Returned, None), Return, Some(delivering(true, Handover::Returned, None))),
        (given.clone(), Show, Some(delivering(true, Handover::Shown, None))),
        (given.clone(), uses(1), Some(delivering(true, Handover::Given, Some(id(1))))),
        (delivering(true, Handover::Given, Some(id(1))), uses(2), None),
        (given.clone(), Keep, Some(delivered(None))),
        (given.clone(), GiveBack, Some(RESOLVED)),
        (delivering(false, Handover::Shown, None), GiveBack, Some(Open)),
        (delivering(true, Handover::Shown, Some(id(1))), GiveBack, Some(used())),
        (given, Withdraw, Some(Withdrawn)),
        (delivered(None), uses(2), Some(delivered(Some(id(2))))),
        (delivered(Some(id(1))), uses(2), None),
        (delivered(None), Resolve, None),
        (delivered(None), Replace, None),
        (delivered(None), deliver(2), None),
        (delivered(None), GiveBack, None),
        (delivered(None), Keep, None),
        (delivered(None), Withdraw, None),
        (Open, Expire, Some(Expired)),
        (RESOLVED, Expire, None),
        (Expired, Expire, None),
        (Expired, Resolve, None),
        (Expired, Replace, None),
        (Expired, uses(1), None),
        (Expired, Withdraw, Some(Withdrawn)),
        (Expired, deliver(1), Some(expired_given(Handover::Given))),
        (expired_given(Handover::Shown), GiveBack, Some(Expired)),
        (expired_given(Handover::Shown), uses(1), None),
        (expired_given(Handover::Shown), Keep, Some(Delivered { attempt: id(1), used_by: None, expired: true })),
        (delivered(None), Expire, None),
        (Withdrawn, Expire, None),
        (Withdrawn, Resolve, None),
        (Withdrawn, of_child, None),
        (Withdrawn, uses(1), None),
        (Withdrawn, Withdraw, None),
    ];
    for (state, event, expected) in rows {
        assert_eq!(state.clone().after(event).ok(), expected, "{state:?} {event:?}");
    }
}

#[test]
fn it_is_written_as_the_database_reads_it() {
    let json = |state: RequestState| serde_json::to_string(&state).unwrap();
    assert_eq!(json(RequestState::Open), r#"{"state":"open"}"#);
    assert_eq!(json(RESOLVED), r#"{"state":"resolved"}"#);
    let state = delivering(true, Handover::ToReturn, Some(id(2)));
    let text = json(state.clone());
    assert_eq!(
        text,
        r#"{"state":"delivering","attempt":"00000000-0000-0000-0000-000000000001","resolved":true,"handover":"to_return","used_by":"00000000-0000-0000-0000-000000000002"}"#
    );
    assert_eq!(serde_json::from_str::<RequestState>(&text).unwrap(), state);
}

fn events() -> impl Strategy<Value = RequestEvent> {
    use RequestEvent::{Expire, GiveBack, Keep, Replace, Resolve, Return, Show, Withdraw};
    let attempts = (0..3u128).prop_map(id);
    let handovers = vec![Handover::Given, Handover::ToReturn, Handover::ByInput];
    prop_oneof![
        prop::sample::select(vec![Resolve, Expire, Replace, Return, Show, Keep, GiveBack, Withdraw]),
        (attempts.clone(), prop::sample::select(handovers), any::<bool>())
            .prop_map(|(attempt, handover, of_child)| RequestEvent::Deliver { attempt, handover, of_child }),
        attempts.prop_map(|attempt| RequestEvent::Use { attempt }),
    ]
}

fn user(state: &RequestState) -> Option<AttemptId> {
    match state {
        RequestState::Resolved { used_by }
        | RequestState::Delivering { used_by, .. }
        | RequestState::Delivered { used_by, .. } => *used_by,
        RequestState::Open | RequestState::Expired | RequestState::Withdrawn => None,
    }
}

proptest! {
    #[test]
    fn a_result_is_delivered_once_and_used_in_one_attempt(events in prop::collection::vec(events(), 0..40)) {
        let mut state = RequestState::Open;
        for event in events {
            let before = state.clone();
            let Ok(after) = state.clone().after(event) else { continue };
            prop_assert!(!matches!(before, RequestState::Withdrawn));
            if matches!(before, RequestState::Delivered { .. }) {
                prop_assert_eq!(after.name(), "delivered");
            }
            if let (Some(first), Some(then)) = (user(&before), user(&after)) {
                prop_assert_eq!(first, then);
            }
            if let RequestState::Delivered { attempt, .. } = &after
                && let RequestState::Delivering { attempt: given, .. } = &before
            {
                prop_assert_eq!(attempt, given);
            }
            prop_assert!(!before.is_expired() || after.is_expired() || after == RequestState::Withdrawn);
            prop_assert!(before == RequestState::Open || !after.is_expired() || before.is_expired());
            prop_assert!(!before.is_resolved() || after.is_resolved() || after == RequestState::Withdrawn);
            state = after;
        }
    }
}

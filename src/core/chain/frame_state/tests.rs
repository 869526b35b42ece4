use super::*;

fn states() -> [FrameState; 8] {
    let failure = Failure { kind: FailureKind::Error, message: "api error".into() };
    [
        FrameState::Ready,
        FrameState::Running { waited: None },
        FrameState::Running { waited: Some(Wait::AgentDecides) },
        FrameState::Waiting { wait: Wait::AgentDecides },
        FrameState::Done,
        FrameState::Failed { failure },
        FrameState::Cancelled,
        FrameState::Paused { waited: None },
    ]
}

fn allowed(event: &FrameEvent) -> Vec<&'static str> {
    let names = states().into_iter().filter(|state| state.clone().after(event.clone()).is_ok());
    let mut names: Vec<_> = names.map(|state| state.name()).collect();
    names.dedup();
    names
}

#[test]
fn what_rests_goes_on_where_it_was() {
    for before in [FrameState::Ready, FrameState::Waiting { wait: Wait::Requests }] {
        let paused = before.clone().after(FrameEvent::Pause).unwrap();
        assert_eq!(paused.name(), "paused");
        assert_eq!(paused.after(FrameEvent::Continue), Ok(before.clone()));
        let running = before.clone().after(FrameEvent::Begin).unwrap();
        let paused = running.clone().after(FrameEvent::End(Ended::Pause(Box::new(Ended::Back)))).unwrap();
        assert_eq!(paused.after(FrameEvent::Continue), Ok(before));
        let asked = Ended::Pause(Box::new(Ended::Wait(Wait::AgentDecides)));
        let paused = running.after(FrameEvent::End(asked)).unwrap();
        assert_eq!(paused, FrameState::Paused { waited: Some(Wait::AgentDecides) });
    }
    assert_eq!(allowed(&FrameEvent::Pause), ["ready", "waiting", "cancelled"]);
    assert_eq!(allowed(&FrameEvent::Continue), ["paused"]);
}

#[test]
fn what_does_not_run_and_is_not_over_is_stopped_at_once() {
    let failure = Failure { kind: FailureKind::Stopped, message: "stopped by a person".into() };
    assert_eq!(allowed(&FrameEvent::Stop(failure.clone())), ["ready", "waiting", "cancelled", "paused"]);
    let stopped = FrameState::Cancelled.after(FrameEvent::Stop(failure)).unwrap();
    assert!(stopped.was_stopped() && stopped.is_over());
}

#[test]
fn only_what_is_over_gets_a_new_instruction() {
    assert_eq!(allowed(&FrameEvent::Instruct), ["done", "failed"]);
    assert_eq!(FrameState::Done.after(FrameEvent::Instruct), Ok(FrameState::Ready));
}

#[test]
fn an_attempt_begins_where_nothing_runs_and_nothing_is_final() {
    let names: Vec<_> =
        states().into_iter().filter(|s| s.clone().after(FrameEvent::Begin).is_ok()).map(|s| s.name()).collect();
    assert_eq!(names, ["ready", "waiting"]);
}

#[test]
fn only_a_running_attempt_ends() {
    for ended in [Ended::Done, Ended::Wait(Wait::Requests), Ended::Cancel, Ended::Again, Ended::Back] {
        for state in states() {
            let running = matches!(state, FrameState::Running { .. });
            assert_eq!(state.after(FrameEvent::End(ended.clone())).is_ok(), running);
        }
    }
}

#[test]
fn a_discarded_attempt_leaves_the_frame_as_it_was() {
    for before in [FrameState::Ready, FrameState::Waiting { wait: Wait::AgentDecides }] {
        let running = before.clone().after(FrameEvent::Begin).unwrap();
        assert_eq!(running.after(FrameEvent::End(Ended::Back)), Ok(before));
    }
}

#[test]
fn after_a_summary_a_frame_waits_only_for_what_it_has_asked_for() {
    let after = |before: FrameState| {
        let running = before.after(FrameEvent::Begin).unwrap();
        running.after(FrameEvent::End(Ended::Summarised)).unwrap()
    };
    let waits = |wait| FrameState::Waiting { wait };
    assert_eq!(after(waits(Wait::Requests)), waits(Wait::Requests));
    for before in [FrameState::Ready, waits(Wait::AgentDecides), waits(Wait::Retry { tries: 1, why: "529".into() })] {
        assert_eq!(after(before), FrameState::Ready);
    }
}

#[test]
fn tries_are_counted_until_one_succeeds() {
    let retry = |state: FrameState| {
        let running = state.after(FrameEvent::Begin).unwrap();
        running.after(FrameEvent::End(Ended::Retry { why: "529".into() })).unwrap()
    };
    let failed = |tries| FrameState::Waiting { wait: Wait::Retry { tries, why: "529".into() } };
    let waiting = FrameState::Waiting { wait: Wait::Requests };
    assert_eq!([retry(FrameState::Ready), retry(waiting.clone())], [failed(1), failed(1)]);
    assert_eq!(retry(failed(1)), failed(2));
    let running = failed(7).after(FrameEvent::Begin).unwrap();
    assert_eq!(retry(running.after(FrameEvent::End(Ended::Wait(Wait::Requests))).unwrap()), failed(1));
}

#[test]
fn what_comes_to_nothing_backs_off_until_it_gets_on_and_whoever_continues_it_need_not_wait() {
    let put_off = |state: FrameState| state.after(FrameEvent::PutOff("no claude".into())).unwrap();
    let restart = |tries, why: &str| FrameState::Waiting { wait: Wait::Restart { tries, why: why.into() } };
    assert_eq!(put_off(FrameState::Waiting { wait: Wait::Requests }), restart(1, "no claude"));
    let twice = put_off(put_off(FrameState::Ready));
    assert_eq!(twice, restart(2, "no claude"));
    let running = twice.clone().after(FrameEvent::Begin).unwrap();
    let die = |state: FrameState| state.after(FrameEvent::End(Ended::Die { why: "killed".into() })).unwrap();
    assert_eq!(die(running.clone()), restart(3, "killed"));
    let died = die(FrameState::Ready.after(FrameEvent::Begin).unwrap());
    assert_eq!(died, restart(0, "killed"), "once may be chance");
    assert_eq!(die(died.after(FrameEvent::Begin).unwrap()), restart(1, "killed"));
    assert_eq!(running.after(FrameEvent::End(Ended::Again)), Ok(FrameState::Ready));
    assert_eq!(twice.clone().after(FrameEvent::TryAgain { open_requests: false }), Ok(FrameState::Ready));
    assert_eq!(twice.after(FrameEvent::Pause), Ok(FrameState::Paused { waited: None }));
    assert_eq!(allowed(&FrameEvent::PutOff(String::new())), ["ready", "waiting"]);
}

#[test]
fn a_pause_is_not_gone_back_to_and_can_be_ended() {
    let resets_at = Timestamp::UNIX_EPOCH;
    for wait in [Wait::UsageLimit { resets_at, tries: 0 }, Wait::Retry { tries: 3, why: String::new() }] {
        let paused = FrameState::Waiting { wait };
        let running = paused.clone().after(FrameEvent::Begin).unwrap();
        assert_eq!(running.after(FrameEvent::End(Ended::Back)), Ok(FrameState::Ready));
        let again = |open_requests| paused.clone().after(FrameEvent::TryAgain { open_requests });
        assert_eq!(again(false), Ok(FrameState::Ready));
        assert_eq!(again(true), Ok(FrameState::Waiting { wait: Wait::Requests }));
    }
    assert!(states()[3].clone().after(FrameEvent::TryAgain { open_requests: false }).is_err());
}

#[test]
fn done_is_final() {
    for event in [FrameEvent::Begin, FrameEvent::End(Ended::Back), FrameEvent::TryAgain { open_requests: false }] {
        assert!(FrameState::Done.after(event).is_err());
    }
}

#[test]
fn what_failed_waits_for_its_open_requests_before_it_is_tried_again() {
    let again = |open_requests| FrameState::Cancelled.after(FrameEvent::TryAgain { open_requests });
    assert_eq!(again(true), Ok(FrameState::Waiting { wait: Wait::Requests }));
    assert_eq!(again(false), Ok(FrameState::Ready));
}

#[test]
fn an_illegal_event_says_what_was_tried() {
    let error = FrameState::Done.after(FrameEvent::Begin).unwrap_err();
    assert_eq!(error.to_string(), "an agent that is done cannot begin an attempt");
}

//! Sums up the costs of agents by day, model and instruction file, and collects metrics for a monitoring system.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::app::App;
use crate::app::asker::PersonsTask;
use crate::app::error::AppError;
use crate::app::view::cost::{CostView, StatsView, SumView};
use crate::core::agent::usage::Spent;
use crate::core::chain::frame_state::AgentStatus;
use crate::store::{Attempts, Counted, Counting};

#[derive(Debug)]
pub(crate) struct Input {
    /// Count the attempts that began since then.
    pub(crate) since: Timestamp,
    /// The time zone for the days.
    pub(crate) zone: TimeZone,
    /// The name of the sum of running agents, whose model is not known yet. `None`: they are included in the sum of agents
    /// with an unknown model.
    pub(crate) running: Option<&'static str>,
}

pub(crate) fn stats(app: &App<'_>, input: &Input) -> Result<StatsView, AppError> {
    app.asker.may(PersonsTask::SeeCosts)?;
    let counted = app.store.counted(Counting::Since(input.since))?;
    let day = |it: &Counted| Some(it.began.to_zoned(input.zone.clone()).date().to_string());
    let dearest = |a: &Spent, b: &Spent| b.cost_usd.total_cmp(&a.cost_usd);
    // Claude Code reports the model at the end of an attempt.
    let running = |it: &Counted| input.running.filter(|_| it.runs).map(str::to_owned);
    Ok(StatsView {
        since: input.since,
        total: view(None, counted.iter().fold(Spent::default(), |sum, it| sum.plus(it.spent))),
        days: sums(&counted, day, |_, _| Ordering::Equal),
        models: sums(&counted, |it| it.model.clone().or_else(|| running(it)), dearest),
        instructions: sums(&counted, |it| it.file.clone(), dearest),
    })
}

/// Sums up by `name`, in this order. Ties are ordered by name.
fn sums(
    counted: &[Counted],
    name: impl Fn(&Counted) -> Option<String>,
    order: impl Fn(&Spent, &Spent) -> Ordering,
) -> Vec<SumView> {
    let mut sums: BTreeMap<Option<String>, Spent> = BTreeMap::new();
    for it in counted {
        let sum = sums.entry(name(it)).or_default();
        *sum = sum.plus(it.spent);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by(|(_, a), (_, b)| order(a, b));
    sums.into_iter().map(|(name, spent)| view(name, spent)).collect()
}

fn view(name: Option<String>, spent: Spent) -> SumView {
    SumView { name, attempts: spent.attempts, cost: CostView(spent) }
}

/// The metrics for a monitoring system.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// The number of chains by the state of their first agent.
    pub(crate) chains: Vec<(AgentStatus, u64)>,
    /// The number of running agents.
    pub(crate) running: usize,
    /// The number of open questions and approvals.
    pub(crate) open_questions: u64,
    /// When the oldest open question was asked.
    pub(crate) oldest_question: Option<Timestamp>,
    /// The cost of all agents that are still recorded.
    pub(crate) spent: Spent,
}

pub(crate) fn metrics(app: &App<'_>) -> Result<Metrics, AppError> {
    app.asker.may(PersonsTask::SeeCosts)?;
    let kinds = app.store.chain_kinds()?;
    let count = |status| kinds.iter().filter(|kind| kind.status == status).map(|kind| kind.count).sum();
    let first = app.store.first_questions(1, None, true)?;
    Ok(Metrics {
        chains: AgentStatus::ALL.map(|status| (status, count(status))).into(),
        running: app.store.attempts(Attempts::Running)?.len(),
        open_questions: first.questions.len() as u64 + first.more,
        oldest_question: first.questions.first().map(|question| question.asked),
        spent: app
            .store
            .counted(Counting::Since(Timestamp::MIN))?
            .iter()
            .fold(Spent::default(), |sum, it| sum.plus(it.spent)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::testing;
    use crate::store;
    use crate::store::testing::{ask, reply};

    fn named(sums: &[SumView]) -> Vec<(Option<&str>, u64, f64)> {
        sums.iter().map(|sum| (sum.name.as_deref(), sum.attempts, sum.cost.0.cost_usd)).collect()
    }

    #[test]
    fn attempts_of_this_time_are_summed_up() {
        let (_temp, store) = store::testing::store();
        store.end(store.start(store.root()), &reply("fine"));
        let caller = store.start(store.root());
        let app = testing::app(&store);
        let within = |hours, running| {
            let since = app.now.checked_sub(jiff::SignedDuration::from_hours(hours)).unwrap();
            let input = Input { since, zone: TimeZone::UTC, running };
            stats(&app, &input).unwrap()
        };
        let sums = within(1, None);
        let today = app.now.to_zoned(TimeZone::UTC).date().to_string();
        assert_eq!(named(&sums.days), [(Some(today.as_str()), 2, 0.25)]);
        assert_eq!(named(&sums.models), [(None, 2, 0.25)]);
        assert_eq!(named(&sums.instructions), [(None, 2, 0.25)]);
        assert_eq!((sums.total.attempts, sums.total.name), (2, None));
        let apart = within(1, Some("still running"));
        assert_eq!(named(&apart.models), [(None, 1, 0.25), (Some("still running"), 1, 0.0)], "the dearest first");
        assert_eq!(named(&within(-1, None).days), []);
        let input = Input { since: Timestamp::MIN, zone: TimeZone::UTC, running: None };
        let refused = stats(&testing::app_of(&store, caller), &input).unwrap_err();
        assert_eq!(refused.to_string(), "agents cannot see what others cost");
    }

    #[test]
    fn equal_sums_are_in_the_order_of_their_names() {
        let at = Timestamp::UNIX_EPOCH;
        let counted = |model: &str, cost_usd| Counted {
            began: at,
            model: Some(model.to_owned()),
            file: None,
            spent: Spent { cost_usd, attempts: 1, ..Spent::default() },
            runs: false,
        };
        let counted = [counted("b", 1.0), counted("a", 1.0), counted("c", 2.0), counted("a", 0.0)];
        let dearest = |a: &Spent, b: &Spent| b.cost_usd.total_cmp(&a.cost_usd);
        let sums = sums(&counted, |it| it.model.clone(), dearest);
        assert_eq!(named(&sums), [(Some("c"), 1, 2.0), (Some("a"), 2, 1.0), (Some("b"), 1, 1.0)]);
    }

    #[test]
    fn chains_questions_and_costs_are_counted() {
        let (_temp, store) = store::testing::store();
        let of =
            |metrics: &Metrics, status| metrics.chains.iter().find(|(of, _)| *of == status).map(|(_, count)| *count);
        let none = metrics(&testing::app(&store)).unwrap();
        assert_eq!((of(&none, AgentStatus::Done), none.open_questions, none.oldest_question), (Some(0), 0, None));
        store.end(store.start(store.root()), &reply("fine"));
        let caller = store.start(store.root());
        store.request(caller, None, &[ask("When?"), ask("Where?")]).unwrap();
        let some = metrics(&testing::app(&store)).unwrap();
        assert_eq!(of(&some, AgentStatus::Done), Some(1));
        assert_eq!(of(&some, AgentStatus::Running), Some(1));
        assert_eq!((some.running, some.open_questions, some.oldest_question.is_some()), (1, 2, true));
        assert_eq!((some.spent.attempts, some.spent.cost_usd), (2, 0.25));
        let refused = metrics(&testing::app_of(&store, caller)).unwrap_err();
        assert_eq!(refused.to_string(), "agents cannot see what others cost");
    }
}

//! Logs the progress, step by step, on standard error.

use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal};
use std::str::FromStr;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

use crate::cli::output::stderr::{tell, warn};
use crate::core::id::IdPrefix;

/// Starts the log. Warnings always appear; all steps appear on a terminal or on request. `filter` selects steps as `RUST_LOG`
/// does (`debug`, `agent_cli::runtime=trace`), and may name agents and chains to follow (`agent=4f2c1a90`). Only the first
/// call has an effect, because a command may run a chain several times.
pub(crate) fn start(verbose: bool, filter: Option<String>) {
    if tracing::dispatcher::has_been_set() {
        return;
    }
    let level = if verbose || io::stderr().is_terminal() { LevelFilter::INFO } else { LevelFilter::WARN };
    let usual = || Filter { levels: Targets::new().with_target(OWN, level), followed: Followed::default() };
    let Filter { levels, followed } = match filter {
        None => usual(),
        Some(text) => Filter::parse(&text).unwrap_or_else(|| {
            warn(&format!(
                "{text} is not a log filter: use error, warn, info, debug, trace, agent_cli::MODULE=LEVEL, agent=ID or chain=ID"
            ));
            usual()
        }),
    };
    tracing_subscriber::registry().with(LogLines { followed }.with_filter(levels)).init();
}

const OWN: &str = env!("CARGO_CRATE_NAME");

/// Selects the events to print.
#[derive(Debug, PartialEq)]
struct Filter {
    levels: Targets,
    followed: Followed,
}

/// The agents and chains to follow, by prefixes of their ids. Empty: all of them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Followed {
    agents: Vec<String>,
    chains: Vec<String>,
}

impl Filter {
    fn parse(text: &str) -> Option<Self> {
        let mut followed = Followed::default();
        let mut levels = Vec::new();
        for part in text.split(',').map(str::trim) {
            let (list, id) = match part.split_once('=') {
                Some(("agent", id)) => (&mut followed.agents, id),
                Some(("chain", id)) => (&mut followed.chains, id),
                _ => {
                    levels.push(part);
                    continue;
                }
            };
            list.push(id.parse::<IdPrefix>().ok()?.as_str().to_owned());
        }
        // A word that is not a level would be parsed as a module, which would hide everything outside that module.
        let is_known = |part: &&str| part.contains('=') || LevelFilter::from_str(part).is_ok() || part.starts_with(OWN);
        let levels = match levels.as_slice() {
            [] if followed != Followed::default() => Targets::new().with_target(OWN, LevelFilter::DEBUG),
            parts if parts.iter().all(is_known) => parts.join(",").parse().ok()?,
            _ => return None,
        };
        Some(Self { levels, followed })
    }
}

impl Followed {
    fn is_about(&self, ids: &Ids) -> bool {
        let any = |prefixes: &[String], id: &Option<String>| {
            let id = id.as_deref().unwrap_or_default();
            prefixes.iter().any(|prefix| id.starts_with(prefix.as_str()))
        };
        *self == Self::default() || any(&self.agents, &ids.agent) || any(&self.chains, &ids.chain)
    }
}

/// The agents and chains that an event or span is about.
#[derive(Clone, Debug, Default)]
struct Ids {
    agent: Option<String>,
    chain: Option<String>,
}

/// Writes each event as one line.
struct LogLines {
    followed: Followed,
}

impl<S: Subscriber + for<'span> LookupSpan<'span>> Layer<S> for LogLines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = LogLine::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(fields.ids);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut line = LogLine::default();
        event.record(&mut line);
        for span in context.event_scope(event).into_iter().flatten() {
            if let Some(ids) = span.extensions().get::<Ids>() {
                line.ids.agent = line.ids.agent.or_else(|| ids.agent.clone());
                line.ids.chain = line.ids.chain.or_else(|| ids.chain.clone());
            }
        }
        let text = line.message + &line.fields;
        if *event.metadata().level() <= Level::WARN {
            warn(&text);
        } else if self.followed.is_about(&line.ids) {
            tell(&text);
        }
    }
}

/// An event's message and fields, and the agents and chains that it is about.
#[derive(Default)]
struct LogLine {
    message: String,
    fields: String,
    ids: Ids,
}

impl Visit for LogLine {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            "agent" => write!(self.ids.agent.get_or_insert_default(), "{value:?}"),
            "chain" => write!(self.ids.chain.get_or_insert_default(), "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_names_levels_and_modules() {
        for (text, is_filter) in [
            ("info", true),
            ("INFO", true),
            ("off", true),
            ("agent_cli", true),
            ("agent_cli::runtime=trace,warn", true),
            ("tokio=debug", true),
            ("yes", false),
            ("info,please", false),
            ("agent_cli=loud", false),
            ("agent=4f2c1a90", true),
            ("chain=4f2c,debug", true),
            ("agent=", false),
            ("agent=nobody", false),
            ("root=4f2c1a90", false),
        ] {
            assert_eq!(Filter::parse(text).is_some(), is_filter, "{text}");
        }
    }

    #[test]
    fn only_what_is_followed_is_printed() {
        let followed = |text: &str| Filter::parse(text).unwrap().followed;
        let ids = |agent: &str, chain: &str| Ids { agent: Some(agent.into()), chain: Some(chain.into()) };
        let is_about = |text: &str, ids: &Ids| followed(text).is_about(ids);
        assert!(is_about("agent=4f2c", &ids("4f2c1a90-1", "7e11")) && !is_about("agent=4f2c", &ids("7e11", "4f2c")));
        assert!(is_about("chain=7e11,debug", &ids("4f2c", "7e11-2")) && !is_about("chain=7e11", &Ids::default()));
        assert!(is_about("debug", &Ids::default()), "all of them");
    }
}

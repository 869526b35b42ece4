//! Progress, step by step, on standard error.

use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal};
use std::str::FromStr;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::cli::output::stderr::{tell, warn};

/// Starts the log: warnings always, all steps for a person who watches or asks. `filter` chooses steps as `RUST_LOG` does
/// elsewhere: `debug`, `agent_cli::runtime=trace`.
pub(crate) fn start(verbose: bool, filter: Option<String>) {
    let level = if verbose || io::stderr().is_terminal() { LevelFilter::INFO } else { LevelFilter::WARN };
    let usual = Targets::new().with_target(env!("CARGO_CRATE_NAME"), level);
    let filter = match filter {
        None => usual,
        Some(named) => named_filter(&named).unwrap_or_else(|| {
            warn(&format!(
                "{named} is not a log filter: use error, warn, info, debug, trace, or agent_cli::MODULE=LEVEL"
            ));
            usual
        }),
    };
    tracing_subscriber::registry().with(LogLines.with_filter(filter)).init();
}

/// A word that is not a level would be taken for a module, and everything outside that module would be hidden.
fn named_filter(text: &str) -> Option<Targets> {
    let is_own = |part: &str| part.trim().starts_with(env!("CARGO_CRATE_NAME"));
    let known = |part: &str| part.contains('=') || LevelFilter::from_str(part.trim()).is_ok() || is_own(part);
    text.split(',').all(known).then(|| text.parse().ok()).flatten()
}

/// Writes each event as one line.
struct LogLines;

impl<S: Subscriber> Layer<S> for LogLines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = LogLine::default();
        event.record(&mut line);
        let text = line.message + &line.fields;
        if *event.metadata().level() <= Level::WARN { warn(&text) } else { tell(&text) }
    }
}

/// The message of an event, followed by its fields.
#[derive(Default)]
struct LogLine {
    message: String,
    fields: String,
}

impl Visit for LogLine {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
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
        ] {
            assert_eq!(named_filter(text).is_some(), is_filter, "{text}");
        }
    }
}

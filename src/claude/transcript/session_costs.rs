//! What a session has cost, as its transcript has it.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::claude::stream::tokens::{Answers, of_models};
use crate::core::agent::usage::Totals;
use crate::core::text::json;

/// What a transcript says about costs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SessionCosts {
    /// What the session had spent when Claude Code noted that last; a fork counts on from there. `None`: its version does not
    /// note it.
    pub(crate) total: Option<Totals>,
    /// All answers in it, those of earlier attempts too.
    pub(crate) answers: Answers,
}

#[derive(Deserialize)]
struct CostLine {
    #[serde(rename = "totalCostUSD")]
    total_cost_usd: Option<f64>,
    #[serde(rename = "modelUsage", default)]
    model_usage: Value,
    message: Option<CostMessage>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CostMessage {
    id: Value,
    model: Value,
    usage: Value,
}

/// Reads a transcript.
///
/// Lines that are not JSON, or have other shapes, are skipped.
pub(crate) fn read(transcript: &Path) -> io::Result<SessionCosts> {
    let mut costs = SessionCosts::default();
    for line in BufReader::new(File::open(transcript)?).split(b'\n') {
        let Ok(line) = json::read::<CostLine>(&line?) else { continue };
        if let Some(usd) = line.total_cost_usd {
            costs.total = Some(Totals { usd, usage: of_models(&line.model_usage) });
        }
        if let Some(CostMessage { id, model, usage }) = line.message {
            costs.answers.absorb(&id, &model, &usage);
        }
    }
    Ok(costs)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::core::agent::usage::Usage;

    #[test]
    fn the_last_total_and_every_answer_count() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(
            file.path(),
            r#"garbage
{"type":"cost-state","totalCostUSD":0.25,"modelUsage":{"m":{"inputTokens":5}}}
{"type":"user","message":{"role":"user","content":"text"}}
{"type":"assistant","message":{"id":"m1","model":"m","usage":{"input_tokens":3,"output_tokens":4}}}
{"type":"cost-state","totalCostUSD":0.5,"modelUsage":{"m":{"inputTokens":8}}}
{"torn"#,
        )
        .unwrap();
        let costs = read(file.path()).unwrap();
        let usage = Usage { input_tokens: 8, ..Usage::default() };
        assert_eq!(costs.total, Some(Totals { usd: 0.5, usage: Some(usage) }));
        assert_eq!((costs.answers.count(), costs.answers.usage().output_tokens), (1, 4));
    }
}

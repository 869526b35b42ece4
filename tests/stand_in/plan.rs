//! Which step is next.

use std::fs::{self, File};
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::memory::Memory;
use crate::script::{self, Condition, Step};

/// The step that an agent takes next.
pub(crate) struct Next {
    /// Its number, from 1.
    pub(crate) number: usize,
    /// The step.
    pub(crate) step: Step,
    /// A file that prevents it from being taken again.
    once: Option<PathBuf>,
}

impl Next {
    /// The next step, given what the agent knows. Without a step left it replies as before, or with the results that it was given
    /// since.
    pub(crate) fn after(memory: &Memory) -> Result<Self> {
        let task = memory.task.as_deref().context("the stand-in was not told what to read")?;
        let instructions = match &memory.instructions {
            Some(text) => text.clone(),
            None => fs::read_to_string(task).unwrap_or_else(|error| format!("end I cannot read {task}: {error}")),
        };
        for (at, line) in script::parse(&instructions)?.into_iter().enumerate().skip(memory.over) {
            let number = at + 1;
            let (wanted, once) = match line.condition {
                Condition::Always => (true, None),
                Condition::Unless(file) => (!file.exists(), None),
                Condition::Said(text) => (memory.results.last().is_some_and(|last| last.contains(&text)), None),
                Condition::Once => {
                    let marker = PathBuf::from(format!("{task}.{number}.once"));
                    (!marker.exists(), Some(marker))
                }
            };
            if wanted {
                return Ok(Self { number, step: line.step, once });
            }
        }
        let given = if memory.results.is_empty() { "done".to_owned() } else { memory.results.join("; ") };
        let last = memory.reply.clone().unwrap_or(given);
        Ok(Self { number: memory.over, step: Step::End(last), once: None })
    }

    /// Prevents a step that is only taken once from being taken again.
    pub(crate) fn begin(&self) -> Result<()> {
        if let Some(marker) = &self.once {
            File::create(marker)?;
        }
        Ok(())
    }
}

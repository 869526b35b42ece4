use serde::{Deserialize, Serialize};

/// Tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Sent and not cached.
    pub input_tokens: u64,
    /// Generated.
    pub output_tokens: u64,
    /// Sent and written to the prompt cache.
    pub cache_creation_input_tokens: u64,
    /// Sent and read from the prompt cache.
    pub cache_read_input_tokens: u64,
}

impl Usage {
    /// Adds each count.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens + other.input_tokens,
            output_tokens: self.output_tokens + other.output_tokens,
            cache_creation_input_tokens: self.cache_creation_input_tokens + other.cache_creation_input_tokens,
            cache_read_input_tokens: self.cache_read_input_tokens + other.cache_read_input_tokens,
        }
    }
}

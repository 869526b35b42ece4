//! Chance that can be repeated.

use std::time::Duration;

/// A sequence of numbers that looks random and follows from its seed (xorshift).
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    /// An instant within a run of the program; early ones are likelier, as most runs are short.
    pub(crate) fn instant(&mut self) -> Duration {
        const LONGEST: u64 = 200_000;
        let end = self.below(LONGEST) + 1;
        Duration::from_micros(self.below(end))
    }
}

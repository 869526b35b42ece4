//! The `agent-cli` program.

fn main() {}

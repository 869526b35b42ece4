# The recipes of this project. `cargo install just` installs the program that runs them.
_list:
    @just --list

# Run every kind of test on the newest Claude Code, or those that the arguments select
test *ARGS:
    cargo test --locked {{ ARGS }}

# Run everything that must pass before a change lands
ci:
    .ci/run

# Show a chain of four agents on the real Claude Code, without an account
demo:
    cargo run --locked --example demo

# Measure what a poll, a hook, and housekeeping cost
bench *ARGS:
    cargo bench --locked {{ ARGS }}

# Build the documentation of the code, and fail at broken links
docs $RUSTDOCFLAGS='-D warnings -A rustdoc::private-intra-doc-links':
    cargo doc --locked --no-deps --document-private-items

# Break the code on purpose, and list what no fast test notices: `just mutants --shard 0/100`, `-F PART_OF_A_PATH`, `--in-diff FILE`
mutants *ARGS:
    command -v cargo-mutants >/dev/null || cargo install --locked cargo-mutants
    cargo mutants {{ ARGS }}

# Record what terminals show of a chain on the real Claude Code
recording:
    cargo run --locked --quiet --example recording > docs/recording.md
    cargo run --locked --quiet --example recording -- --svg > docs/recording.svg

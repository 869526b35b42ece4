//! The front desk: what the program can do, without a command line, standard output, environment or current directory.

pub(crate) mod config;

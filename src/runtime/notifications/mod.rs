//! Tells a person what happens, with the commands of their config file. Only a person's processes do so: those of agents leave
//! everything in the outbox.

mod command;
pub(crate) mod config_file;
pub(crate) mod doctor;
mod reload;
pub(crate) mod sender;
mod stalls;

//! Notifies a person with the commands of their config file. Only a person's processes do so: agents' processes leave
//! everything in the outbox.

pub(crate) mod config_check;
pub(crate) mod config_file;
mod reload;
mod run_command;
pub(crate) mod sender;
mod stalls;

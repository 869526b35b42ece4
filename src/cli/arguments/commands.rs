//! The list of the commands, each of which can be described alone.

/// Makes the enum `Subcommands` of names, variants and arguments.
macro_rules! commands {
    ($($name:literal => $variant:ident($arguments:ty),)*) => {
        #[derive(Debug, Subcommand)]
        enum Subcommands {
            $(#[command(name = $name)] $variant($arguments),)*
        }

        impl Subcommands {
            /// Describes the command of this name.
            fn described(name: &str) -> Option<Command> {
                match name {
                    $($name => Some(<$arguments>::augment_args(Command::new($name))),)*
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use commands;

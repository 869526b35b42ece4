//! Standard input with instructions, which a person may have to type.

use std::io::{self, IsTerminal, Read};

use crate::cli::output::tell;

/// Says what to type, once it is read.
#[derive(Debug, Default)]
pub(crate) struct TypedInstructions {
    has_begun: bool,
}

impl Read for TypedInstructions {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut input = io::stdin().lock();
        if !self.has_begun && input.is_terminal() {
            tell("type the instructions, then press Ctrl-D on an empty line");
        }
        self.has_begun = true;
        input.read(buffer)
    }
}

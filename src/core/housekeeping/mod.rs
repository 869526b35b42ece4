//! Rules of `fsck`, `doctor`, `gc`, `export` and `import`.

pub mod archive;
pub mod doctor_finding;
pub mod fsck;
pub mod fsck_finding;
pub mod inventory;
pub mod relocation;
pub mod retention;

//! Rules of `fsck`, `doctor`, `gc`, `export` and `import`.

pub(crate) mod archive;
pub(crate) mod consistency;
pub(crate) mod doctor_finding;
pub(crate) mod file_ownership;
pub(crate) mod fsck_finding;
pub(crate) mod hosting;
pub(crate) mod inventory;
pub(crate) mod relocation;
pub(crate) mod retention;
pub(crate) mod rights;
pub(crate) mod service_units;

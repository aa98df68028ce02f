//! The declaration of a setting.

/// A setting.
#[derive(Debug)]
pub struct Setting {
    pub(super) name: &'static str,
    /// The placeholder of the value in the help; empty for a switch.
    pub(super) value: &'static str,
    pub(super) default: &'static str,
    pub(super) help: &'static str,
}

impl Setting {
    /// A setting with a value.
    pub(super) const fn new(
        name: &'static str,
        value: &'static str,
        default: &'static str,
        help: &'static str,
    ) -> Self {
        Self { name, value, default, help }
    }

    /// A setting that is on or off, and off by default.
    pub(super) const fn switch(name: &'static str, help: &'static str) -> Self {
        Self::new(name, "", "false", help)
    }

    pub(super) fn is_switch(&self) -> bool {
        self.value.is_empty()
    }
}

/// The environment variable of the setting with this name.
pub fn variable(name: &str) -> String {
    format!("POLYNYM_{}", name.to_uppercase().replace('-', "_"))
}

/// The key in the file of the setting with this name.
pub fn key(name: &str) -> String {
    name.replace('-', "_")
}

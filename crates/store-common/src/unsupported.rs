//! The advice for a store of versions that the program does not support.

/// The advice, by whether a newer program wrote the store.
pub const fn advice(is_newer: bool) -> &'static str {
    if is_newer {
        "use a newer program"
    } else {
        "export it with the program that wrote it, and import that with this one"
    }
}

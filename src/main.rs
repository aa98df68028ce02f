//! The `polynym` program.
fn main() {}

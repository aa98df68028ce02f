//! The secrets of deliveries.

use std::fs;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::failure::Failure;
use crate::files;

/// The bytes of a new secret.
const BYTES: usize = 32;

/// A new secret.
pub fn generate() -> Result<String, Failure> {
    let mut bytes = [0; BYTES];
    let filled = getrandom::fill(&mut bytes);
    filled.map_err(|error| Failure::Other(format!("no random numbers: {error}")))?;
    Ok(format!("whsec_{}", STANDARD.encode(bytes)))
}

/// The secrets of a file, one a line.
pub fn read(path: &Path) -> Result<Vec<String>, Failure> {
    let text = fs::read_to_string(path).map_err(|error| files::failure(path, error))?;
    Ok(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

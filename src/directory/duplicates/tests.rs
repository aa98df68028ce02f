//! Duplicates.

//! Folders: none has so many files that a reader must search it.

use std::collections::BTreeMap;

/// Returns the folders with more than `limit` of these files directly in them.
pub fn large(files: &[String], limit: usize) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for (folder, _) in files.iter().filter_map(|path| path.rsplit_once('/')) {
        *counts.entry(folder).or_insert(0) += 1;
    }
    counts.into_iter().filter(|(_, count)| *count > limit).collect()
}

#[test]
fn a_large_folder_is_found() {
    let files = ["a/1", "a/2", "a/b/3", "a/b/4", "a/b/5"].map(str::to_owned);
    assert_eq!(large(&files, 2), [("a/b", 3)].into());
}

//! The documents with tables of results, and their plots.
//!
//! A table stands between `<!-- results: FILE VIEW -->` and `<!-- end -->`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Fallible;
use crate::plot;
use crate::results::Results;
use crate::tables;
use crate::timeline;

const START: &str = "<!-- results: ";
const END: &str = "<!-- end -->";

/// Rewrites all tables and plots.
pub fn render(root: &Path) -> Fallible<()> {
    for (path, text) in rendered(root)? {
        fs::write(root.join(path), text)?;
    }
    Ok(())
}

/// Returns a message for each document and plot that differs from its results.
pub fn faults(root: &Path) -> Fallible<Vec<String>> {
    let files = rendered(root)?.into_iter();
    let differs = files.filter(|(path, text)| {
        fs::read_to_string(root.join(path)).ok().is_none_or(|present| present != *text)
    });
    let advice = "differs from benches/results; run `cargo run -p harness -- render`";
    Ok(differs.map(|(path, _)| format!("{}: {advice}", path.display())).collect())
}

/// Returns the documents with results, and the plots, as they should be.
fn rendered(root: &Path) -> Fallible<Vec<(PathBuf, String)>> {
    let mut files = Vec::new();
    for path in documents(root)? {
        let text = fs::read_to_string(root.join(&path))?;
        if text.contains(START) {
            let document =
                with_tables(root, &text).map_err(|error| format!("{}: {error}", path.display()))?;
            files.push((path, document));
        }
    }
    for plot in plot::PLOTS {
        let results = Results::load(root, plot.results)?;
        files.push((Path::new("docs").join(plot.file), plot.draw(&results)?));
    }
    for plot in timeline::TIMELINES {
        files.push((Path::new("docs").join(plot.file), plot.draw(root)?));
    }
    Ok(files)
}

fn documents(root: &Path) -> Fallible<Vec<PathBuf>> {
    let mut paths = vec![PathBuf::from("README.md")];
    for entry in fs::read_dir(root.join("docs"))? {
        let name = PathBuf::from(entry?.file_name());
        if name.extension().is_some_and(|extension| extension == "md") {
            paths.push(Path::new("docs").join(name));
        }
    }
    Ok(paths)
}

/// Replaces the tables of a document.
fn with_tables(root: &Path, text: &str) -> Fallible<String> {
    let mut parts = text.split(START);
    let mut document = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (marker, rest) = part.split_once(" -->").ok_or("a marker without an end")?;
        let (_, rest) = rest.split_once(END).ok_or_else(|| format!("no {END} after {marker}"))?;
        let (file, view) = marker.split_once(' ').ok_or_else(|| format!("{marker}: no view"))?;
        let table = tables::table(&Results::load(root, file)?, view)?;
        document += &format!("{START}{marker} -->\n{table}\n{END}{rest}");
    }
    Ok(document)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_agree_with_their_results() {
        let faults = faults(&crate::root()).unwrap();
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn a_changed_figure_is_found() {
        let (root, marker) = (crate::root(), "embedded.json throughput");
        let right = with_tables(&root, &format!("{START}{marker} -->{END}\n")).unwrap();
        let wrong = right.replacen(|c: char| c.is_ascii_digit(), "x", 1);
        assert_ne!(right, wrong);
        assert_eq!(with_tables(&root, &wrong).unwrap(), right);
    }

    #[test]
    fn an_unknown_view_is_refused() {
        let text = format!("{START}embedded.json weather -->{END}");
        assert!(with_tables(&crate::root(), &text).is_err());
    }
}

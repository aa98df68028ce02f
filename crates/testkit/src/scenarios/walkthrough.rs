//! Checks docs/walkthrough.md: run in order, each command prints the output shown
//! below it. Ids and etags differ but correspond one to one; times differ but lie the same number
//! of days apart.

use std::collections::{HashMap, HashSet};

use locality_uuid::LocalityId;
use prost_types::Timestamp;

use crate::doc_examples::{self, Example};
use crate::root;
use crate::server::{Server, polynym};

const PAGE: &str = "docs/walkthrough.md";
const DAY: i64 = 24 * 60 * 60;

/// The mapping from values on the page to values of this run.
#[derive(Default)]
pub struct Walk {
    /// Ids and etags of the page, with those of this run.
    names: HashMap<String, String>,
    /// The time of the first command, on the page and in this run.
    began: Option<(Timestamp, Timestamp)>,
}

impl Walk {
    /// Returns true if two outputs agree up to ids, etags and times.
    pub fn fits(&mut self, printed: &str, answered: &str) -> bool {
        let lines = printed.lines().count() == answered.lines().count();
        lines
            && printed
                .lines()
                .zip(answered.lines())
                .all(|(printed, answered)| self.line_fits(printed, answered))
    }

    /// Compares word by word: the column widths of a table depend on its contents.
    fn line_fits(&mut self, printed: &str, answered: &str) -> bool {
        let (printed, answered): (Vec<_>, Vec<_>) = (words(printed), words(answered));
        printed.len() == answered.len()
            && printed.iter().zip(&answered).all(|(this, that)| self.word_fits(this, that))
    }

    fn word_fits(&mut self, printed: &str, answered: &str) -> bool {
        if let (Ok(printed), Ok(answered)) = (printed.parse(), answered.parse()) {
            return self.time_fits(printed, answered);
        }
        if !(is_name(printed) && is_name(answered)) {
            return printed == answered;
        }
        let name = self.names.entry(printed.to_owned()).or_insert_with(|| answered.to_owned());
        name == answered
    }

    fn time_fits(&mut self, printed: Timestamp, answered: Timestamp) -> bool {
        let (from, to) = *self.began.get_or_insert((printed, answered));
        let days =
            |from: Timestamp, to: Timestamp| (to.seconds - from.seconds + DAY / 2).div_euclid(DAY);
        days(from, printed) == days(to, answered)
    }

    /// Returns true if distinct names of the page are distinct in this run.
    pub fn has_no_name_twice(&self) -> bool {
        self.names.values().collect::<HashSet<_>>().len() == self.names.len()
    }
}

/// Returns the words of a line; a drawn rule counts as an empty word.
fn words(line: &str) -> Vec<String> {
    let drawn = |c: char| matches!(c, '─' | '═');
    line.split_whitespace()
        .map(|word| word.split(drawn).filter(|part| !part.is_empty()).collect())
        .collect()
}

fn is_name(word: &str) -> bool {
    let is_etag = word.len() == 16 && word.chars().all(|c| c.is_ascii_hexdigit());
    is_etag || word.parse::<LocalityId>().is_ok()
}

fn page() -> Vec<Example> {
    let page = doc_examples::parse(PAGE, &std::fs::read_to_string(root().join(PAGE)).unwrap());
    assert!(page.len() > 50, "{} commands", page.len());
    page
}

/// Runs the commands of the page in one shell and returns the output of each.
fn pasted(page: &[Example], url: &str) -> Vec<String> {
    const END: &str = "== the end of an answer ==\n";
    let lines = page
        .iter()
        .map(|shown| format!("{{ {}\n}} 2>&1; echo '{}'\n", shown.command, END.trim_end()));
    let output = doc_examples::shell(&lines.collect::<String>(), url);
    let answers: Vec<_> =
        String::from_utf8(output.stdout).unwrap().split(END).map(str::to_owned).collect();
    assert_eq!(answers.len(), page.len() + 1, "{answers:?}");
    answers
}

/// Runs the page on an empty store and verifies the store afterwards.
pub fn walk(store: &str) {
    walk_and_verify(Server::start(&["--store", store]), store);
}

/// Runs the page against a server whose store has another connection string for the verification.
pub fn walk_and_verify(server: Server, store: &str) {
    let mut walk = Walk::default();
    let page = page();
    let answers = pasted(&page, &server.url);
    for (Example { position, command, output: printed }, answered) in page.iter().zip(answers) {
        assert!(
            walk.fits(printed, &answered),
            "{position}: {command}\n--- printed\n{printed}--- answered\n{answered}"
        );
        assert!(walk.has_no_name_twice(), "{position}: {command}\n{answered}\n{:?}", walk.names);
    }

    server.signal("TERM");
    assert!(server.wait().success());
    let verify = polynym(&["store", "verify", "--store", store]).output().unwrap();
    assert!(verify.status.success(), "{}", String::from_utf8_lossy(&verify.stdout));
}

//! The walk through the life of a user, docs/walkthrough.md: taken in order, on both stores, each
//! command answers what is printed below it. Ids and etags are other ones, but the same where the
//! page has the same; times are other ones, as many days apart.

use std::collections::{HashMap, HashSet};

use locality_uuid::LocalityId;
use prost_types::Timestamp;

use crate::server::{Server, polynym};
use crate::servers;
use crate::shown::{self, Shown};

const PAGE: &str = "docs/walkthrough.md";
const DAY: i64 = 24 * 60 * 60;

/// What of the page is something else here.
#[derive(Default)]
struct Walk {
    /// The ids and etags of the page, and those that stand in their place.
    names: HashMap<String, String>,
    /// When it began: on the page, and here.
    began: Option<(Timestamp, Timestamp)>,
}

impl Walk {
    /// Whether one answer is the other, but for what is always another.
    fn fits(&mut self, printed: &str, answered: &str) -> bool {
        let lines = printed.lines().count() == answered.lines().count();
        lines
            && printed
                .lines()
                .zip(answered.lines())
                .all(|(printed, answered)| self.line_fits(printed, answered))
    }

    /// Word by word: the columns of a table are as wide as what is in them.
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

    /// Ids that are two on the page are two here.
    fn has_no_name_twice(&self) -> bool {
        self.names.values().collect::<HashSet<_>>().len() == self.names.len()
    }
}

/// The words of a line; of lines that are drawn, only that they are there.
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

fn page() -> Vec<Shown> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/walkthrough.md");
    let page = shown::shown(PAGE, &std::fs::read_to_string(path).unwrap());
    assert!(page.len() > 50, "{} commands", page.len());
    page
}

/// What a shell answers to the commands as they stand on the page, one after the other.
fn pasted(page: &[Shown], url: &str) -> Vec<String> {
    const END: &str = "== the end of an answer ==\n";
    let lines = page
        .iter()
        .map(|shown| format!("{{ {}\n}} 2>&1; echo '{}'\n", shown.command, END.trim_end()));
    let output = shown::shell(&lines.collect::<String>(), url);
    let answers: Vec<_> =
        String::from_utf8(output.stdout).unwrap().split(END).map(str::to_owned).collect();
    assert_eq!(answers.len(), page.len() + 1, "{answers:?}");
    answers
}

/// Takes the walk on a store that is empty, and looks through the store afterwards.
fn walk(store: &str) {
    let server = Server::start(&["--store", store]);
    let mut walk = Walk::default();
    let page = page();
    let answers = pasted(&page, &server.url);
    for (Shown { place, command, output: printed }, answered) in page.iter().zip(answers) {
        assert!(
            walk.fits(printed, &answered),
            "{place}: {command}\n--- printed\n{printed}--- answered\n{answered}"
        );
        assert!(walk.has_no_name_twice(), "{place}: {command}\n{answered}\n{:?}", walk.names);
    }
    server.signal("TERM");
    assert!(server.wait().success());
    let verify = polynym(&["store", "verify", "--store", store]).output().unwrap();
    assert!(verify.status.success(), "{}", String::from_utf8_lossy(&verify.stdout));
}

#[test]
fn on_the_embedded_store() {
    let folder = tempfile::tempdir().unwrap();
    walk(&format!("embedded:{}", folder.path().join("walk").display()));
}

#[tokio::test(flavor = "multi_thread")]
async fn on_mongodb() {
    let store = servers::one_member().await.uri("walk", "");
    let walked = tokio::task::spawn_blocking(move || {
        let init = polynym(&["store", "init", "--store", &store]).output().unwrap();
        assert!(init.status.success(), "{}", String::from_utf8_lossy(&init.stderr));
        walk(&store);
    });
    walked.await.unwrap();
}

/// Only what is told apart is held.
#[test]
fn answers_are_told_apart() {
    let [joe, ann] =
        ["16553674-d965-ba02-b5fc-01a1ff46da1d", "bcecc0f5-d965-ba02-b5fc-01a1ff46dae2"];
    let mut walk = Walk::default();
    assert!(walk.fits(
        &format!("│ user ┆ {joe} │\n└──┴──┘\n"),
        &format!("│ user    ┆ {ann} │\n└─┴──────┘\n")
    ));
    assert!(walk.fits(joe, ann) && !walk.fits(joe, joe) && !walk.fits("no line", "one\nmore"));
    assert!(walk.has_no_name_twice() && walk.fits(ann, ann) && !walk.has_no_name_twice());
    assert!(walk.fits("until: 2026-01-01T09:00:00.123Z", "until: 2030-05-05T10:00:00Z"));
    assert!(walk.fits("until: 2026-01-31T09:00:01.000Z", "until: 2030-06-04T10:00:09.876Z"));
    assert!(!walk.fits("until: 2026-01-31T09:00:01.000Z", "until: 2030-06-05T10:00:09.876Z"));
    assert!(!walk.fits("│ state ┆ active │", "│ state ┆ merged │") && !walk.fits("├─┤", "│─│"));
}

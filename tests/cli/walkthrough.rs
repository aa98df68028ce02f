//! The commands of docs/walkthrough.md print the output shown below them.

use crate::support::scenarios::walkthrough::{Walk, walk};

#[test]
fn the_walkthrough_is_true_on_the_embedded_store() {
    let folder = tempfile::tempdir().unwrap();
    walk(&format!("embedded:{}", folder.path().join("walk").display()));
}

/// The comparison itself distinguishes different outputs.
#[test]
fn different_outputs_are_distinguished() {
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

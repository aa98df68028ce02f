//! Names of deleted and merged users: the commands find them, and say what happened to them.

use super::client::{one, sample, text, user};
use super::{assert_fails, stderr, stdout};

#[test]
fn a_deleted_user_is_shown_and_restored_by_its_name() {
    let server = sample();
    let joe = text(&user(&server, &["user", "get", "handle:joe"]), "userId").to_owned();
    user(&server, &["user", "delete", "handle:joe", "--reason", "left the company"]);

    let output = server.run(&["user", "get", "phone/US:(415) 555-2671"]);
    assert!(stdout(&output).contains("deleted"));
    let told = stderr(&output);
    let expected = [
        &*format!("user {joe} (Joe Smith) was deleted at 20"),
        " by anonymous, with the reason \"left the company\", and will be purged at 20",
        &format!("to restore it: polynym user undelete {joe}"),
    ];
    expected.iter().for_each(|part| assert!(told.contains(part), "{told}"));

    // Other commands tell the same.
    for arguments in [
        &["user", "disable", "handle:joe"][..],
        &["identity", "link", "email:joe.smith@example.com", "handle:joe2"],
        &["user", "merge", "handle:grace", "handle:joe"],
    ] {
        let advice = format!("polynym user undelete {joe}");
        assert_fails(&server.run(arguments), 1, &["was deleted at", &advice]);
    }
    assert_fails(&server.run(&["user", "get", "handle:nobody"]), 1, &["IDENTITY_NOT_FOUND"]);

    assert_eq!(text(&user(&server, &["user", "undelete", "handle:joe"]), "userId"), joe);
    assert_eq!(stderr(&server.run(&["user", "get", "handle:joe"])), "");
}

#[test]
fn a_merge_is_undone_by_a_name_of_the_merged_user() {
    let server = sample();
    let id = |name: &str| text(&user(&server, &["user", "get", name]), "userId").to_owned();
    let (joe, grace) = (id("handle:joe"), id("handle:grace"));
    one(&server, &["user", "merge", "handle:joe", "handle:grace", "--reason", "one person"]);

    let told = stderr(&server.run(&["user", "get", &grace]));
    let expected = [
        &*format!("user {grace} was merged into {joe} at 20"),
        " by anonymous, with the reason \"one person\"",
        &format!("to undo it: polynym user unmerge {joe} {grace}"),
    ];
    expected.iter().for_each(|part| assert!(told.contains(part), "{told}"));

    // A name that the primary had all along is of no merged user.
    let wrong = server.run(&["user", "unmerge", &joe, "email:joe.smith@example.com"]);
    assert_fails(&wrong, 1, &["brought email:joe.smith@example.com along", "by its id"]);
    let unmerged = user(&server, &["user", "unmerge", "handle:joe", "handle:grace"]);
    assert_eq!(text(&unmerged, "userId"), grace);
    let again = server.run(&["user", "unmerge", "handle:joe", "handle:grace"]);
    assert_fails(&again, 1, &["NOT_MERGED"]);
}

#[test]
fn unread_notices_are_counted() {
    let server = sample();
    assert_eq!(stdout(&server.run(&["inbox", "count", "handle:joe"])), "0\n");
    for subject in ["one", "two"] {
        one(&server, &["inbox", "send", "handle:joe", "--subject", subject]);
    }
    assert_eq!(stdout(&server.run(&["inbox", "count", "handle:joe"])), "2\n");
    stdout(&server.run(&["inbox", "read", "handle:joe", "--all"]));
    assert_eq!(one(&server, &["inbox", "count", "handle:joe"])["unread"], 0);
}

#[test]
fn a_notice_is_deleted_from_the_inbox_of_one_user() {
    let server = sample();
    let send = ["inbox", "send", "handle:joe", "handle:grace", "--subject", "one"];
    let sent = one(&server, &send);
    let id = text(&sent, "noticeId");
    assert!(server.run(&["inbox", "delete", "handle:joe", id]).status.success());
    let unread = |name: &str| one(&server, &["inbox", "count", name])["unread"].clone();
    assert_eq!((unread("handle:joe"), unread("handle:grace")), (0.into(), 1.into()));
    let again = server.run(&["inbox", "delete", "handle:joe", id]);
    assert_fails(&again, 1, &["NOTICE_NOT_FOUND (NOT_FOUND)"]);
}

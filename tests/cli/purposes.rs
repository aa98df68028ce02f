//! `--reason` and `--operation-id`.

use super::client::one;
use super::{assert_fails, stdout};
use crate::server::{Server, polynym};

#[test]
fn the_history_and_the_log_have_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut command = polynym(&["serve", "--listen", "127.0.0.1:0", "--log", "info", "--sample"]);
    let server = Server::start_with(command.stderr(std::fs::File::create(&log).unwrap()), &[]);
    let reason = "größer Umzug, joe@example.com rief an";
    let purpose = ["--reason", reason, "--operation-id", "crm-7"];
    for arguments in [
        &["user", "disable", "handle:joe"][..],
        &["identity", "link", "handle:joe", "handle:joseph"],
        &["tenant", "set", "--history-retention", "90d"],
    ] {
        one(&server, &[arguments, &purpose].concat());
    }

    for arguments in
        [&["user", "history", "handle:joseph", "--limit", "2"][..], &["tenant", "history"]]
    {
        let shown = stdout(&server.run(arguments));
        let lines = format!("\n    reason: {reason}\n    operation: crm-7\n");
        assert!(shown.contains(&lines), "{shown}");
    }
    let event = one(&server, &["user", "history", "handle:joseph", "--limit", "1"]);
    assert_eq!((&event["reason"], &event["operationId"]), (&reason.into(), &"crm-7".into()));

    let of_operation = ["tenant", "events", "--operation", "crm-7"];
    let shown = stdout(&server.run(&of_operation));
    assert_eq!(shown.matches("\n    operation: crm-7\n").count(), 2, "{shown}");
    let others = ["tenant", "events", "--operation", "crm-8", "--caller", "anonymous"];
    assert_eq!(stdout(&server.run(&others)), "");
    let owners = one(&server, &["identity", "owners", "handle:joseph"]);
    assert_eq!(owners["owners"].as_array().unwrap().len(), 1);
    let shown = stdout(&server.run(&["identity", "owners", "handle:joseph"]));
    assert!(shown.contains("now") && shown.contains("are not known"), "{shown}");

    let log = std::fs::read_to_string(&log).unwrap();
    let line = log.lines().find(|line| line.contains("DisableUser")).unwrap();
    assert!(line.contains("crm-7") && line.contains("größer Umzug, *** rief an"), "{line}");
    assert!(!log.contains("joe@example.com"), "{log}");

    let wrong = ["user", "enable", "handle:joseph", "--operation-id", "two words"];
    assert_fails(&server.run(&wrong), 1, &["FIELD_INVALID", "polynym-operation-id"]);
}

//! Deliveries of events.

use std::fs;

use super::client::one;
use super::{assert_fails, stderr, stdout};
use crate::server::Server;

/// A port on which nobody listens.
const NOBODY: &str = "http://127.0.0.1:9/hook";

#[test]
fn events_are_delivered_from_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", folder.path().join("store").display());
    let server = Server::start(&["--store", &store, "--delivery-allow=127.0.0.1"]);
    let created = server.run(&["delivery", "create", "billing", "--url", NOBODY]);
    assert!(stdout(&created).contains("  state: active\n"), "{created:?}");
    let secret = stderr(&created);
    let secret = secret.trim().rsplit(' ').next().unwrap();
    assert!(secret.starts_with("whsec_"), "{created:?}");
    assert!(!stdout(&server.run(&["delivery", "list", "--json"])).contains("whsec_"));

    let file = folder.path().join("secrets");
    fs::write(&file, format!("{secret}\n{secret}\n")).unwrap();
    let file = file.to_str().unwrap();
    let set = ["delivery", "set", "billing", "--secret-file", file, "--type", "user_created"];
    let set = one(&server, &set);
    assert_eq!(
        (&set["secretCount"], &set["types"][0]),
        (&2.into(), &"EVENT_TYPE_USER_CREATED".into())
    );
    let paused = one(&server, &["delivery", "pause", "billing"]);
    assert_eq!(paused["pauseReason"], "PAUSED");
    assert!(stdout(&server.run(&["delivery", "list"])).contains("paused: PAUSED"));
    one(&server, &["delivery", "resume", "billing"]);

    stdout(&server.run(&["user", "create", "--identity", "handle:ann"]));
    let again = server.run(&["delivery", "replay", "billing", "--from", "1h"]);
    assert_eq!(stdout(&again), "events of 1 users are delivered again\n");
    assert!(stdout(&server.run(&["delivery", "attempts", "billing"])).contains(":1"));
    assert_fails(&server.run(&["delivery", "test", "billing"]), 1, &[]);
    for _ in 0..2 {
        stdout(&server.run(&["delivery", "delete", "billing"]));
    }
    let gone = server.run(&["delivery", "attempts", "billing"]);
    assert_fails(&gone, 1, &["DELIVERY_NOT_FOUND"]);
    let refused = ["delivery", "create", "b", "--url", "https://10.0.0.1/"];
    assert_fails(&server.run(&refused), 1, &["url"]);
}

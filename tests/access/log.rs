//! The log lines of mutations.

use std::fs::{self, File};

use polynym::proto::v1;
use serde_json::Value;

use super::{Callers, call, connect};
use crate::calls::{email, identity};
use crate::server::{Server, polynym};

const CANARY: &str = "canary-4711@example.com";

#[tokio::test(flavor = "multi_thread")]
async fn each_mutation_has_a_line_without_identifiers() {
    let callers = Callers::new();
    let token = callers.create("sign-up", "admin", "*");
    let log = callers.folder.path().join("log");
    let mut command =
        polynym(&["serve", "--listen", "127.0.0.1:0", "--log-format", "json", "--credentials"]);
    command.arg(callers.path()).stderr(File::create(&log).unwrap());
    let store = format!("embedded:{}", callers.folder.path().join("store").display());
    let server = Server::start_with(&mut command, &["--store", &store]);
    let channel = connect(&server).await;

    let create = async || {
        let user = v1::User {
            display_name: CANARY.to_owned(),
            identities: vec![identity(email(CANARY))],
            ..Default::default()
        };
        let request = v1::CreateUserRequest { user: Some(user), ..Default::default() };
        let path = "/polynym.v1.RegistryService/CreateUser";
        let header = format!("Bearer {token}");
        call::<_, v1::CreateUserResponse>(&channel, path, Some(&header), request).await
    };
    let user_id = create().await.unwrap().user.unwrap().user_id;
    create().await.unwrap_err();
    drop(server);

    let text = fs::read_to_string(log).unwrap();
    assert!(!text.contains("canary"), "{text}");
    assert!(!text.contains(&token), "{text}");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let lines: Vec<_> = lines.filter(|line| line["message"] == "mutation").collect();
    assert_eq!(lines.len(), 2, "{text}");
    for line in &lines {
        assert_eq!(line["caller"], "sign-up");
        assert_eq!((&line["tenant"], &line["method"]), (&"default".into(), &"CreateUser".into()));
        assert!(line["ms"].as_f64().unwrap() > 0.0);
    }
    assert_eq!((&lines[0]["user"], &lines[0]["outcome"]), (&user_id.into(), &"done".into()));
    assert_eq!(lines[1]["outcome"], "refused");
}

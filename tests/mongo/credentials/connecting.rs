//! Encrypted connections with credentials: certificates instead of passwords, and errors that name
//! the cause without the password.

use std::process::Output;

use futures_util::future::join_all;
use mongodb::bson::doc;
use tokio::task::spawn_blocking;

use super::secured::{Secured, run};
use crate::servers;
use crate::support::tls::Authority;

const COMMANDS: [&[&str]; 3] = [
    &["serve", "--listen=127.0.0.1:0", "--wait-for-store=0"],
    &["store", "init"],
    &["store", "verify"],
];

fn error(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A connection string without its credentials.
fn without_user(uri: &str) -> String {
    let (_, address) = uri.split_once('@').unwrap();
    format!("mongodb://{address}")
}

#[tokio::test(flavor = "multi_thread")]
async fn connection_errors_name_the_cause() {
    let server = Secured::shared().await;
    let other = Authority::new();
    let (ca, other) = (server.path("ca.pem"), other.path("ca.pem"));
    let good = server.uri("root", "connecting");
    let plain = servers::one_member().await.uri("connecting", "");
    let trust = format!("&tlsCAFile={ca}");

    let who = "check user, password and authSource";
    let authority = "tlsCAFile in the URI must name";
    let cases = [
        (good.replace("s3cret", "s3cre"), who),
        (good.replace("root:", "nobody:"), who),
        (good.replace("authSource=admin&", ""), who),
        (without_user(&good), "requires credentials"),
        (good.replace(&trust, ""), authority),
        (good.replace(&ca, &other), authority),
        (good.replace(&ca, "none.pem"), "none.pem"),
        (good.replace("127.0.0.1", "localhost"), "names of the certificate"),
        (good.replace(&format!("&{}", server.tls()), ""), "add tls=true"),
        (format!("{plain}&{}", server.tls()), "remove tls=true"),
    ];
    let attempts = cases.into_iter().flat_map(|(uri, expected)| {
        COMMANDS.map(|command| {
            let uri = uri.clone();
            spawn_blocking(move || (expected, command, run(&uri, command)))
        })
    });
    for attempt in join_all(attempts).await {
        let (expected, command, output) = attempt.unwrap();
        let error = error(&output);
        assert_eq!(output.status.code(), Some(1), "{command:?}: {error}");
        assert!(error.contains(expected), "{command:?}, {expected}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_replaces_a_password() {
    let server = Secured::shared().await;
    let user = doc! { "createUser": "CN=client", "roles": [{ "role": "root", "db": "admin" }] };
    server.database("$external").run_command(user).await.unwrap();
    let file = format!("tlsCertificateKeyFile={}", server.path("client.both"));
    let uri = without_user(&server.uri("", "certificate"))
        .replace("authSource=admin", &format!("authMechanism=MONGODB-X509&{file}"));
    let output = run(&uri, &["store", "init"]);
    assert!(output.status.success(), "{}", error(&output));
}

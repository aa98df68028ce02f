//! The health of the server, and its callers.

use testkit::calls::Client;

use crate::browser::Site;
use crate::tokens::GuardedSite;

#[tokio::test]
async fn health_shows_the_store_and_the_rates() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let health = browser.get("/console/health").await;
    health.assert_has(&[
        "The store answers",
        "embedded, one file",
        "Mutations that wait for the writer",
        "Open watches",
        "<span class=\"state completed\">fine</span>",
        "Fine: up to 100 ms. Slow: up to a second.",
        "hx-trigger=\"every 5s\"",
        "<th scope=\"row\">ListTenants</th>",
    ]);
    let still = browser.get("/console/health?live=off").await;
    assert!(!still.text.contains("hx-trigger=\"every 5s\""));
    browser.headers = vec![("hx-request", "true".to_owned())];
    let part = browser.get("/console/health").await;
    part.assert_has(&["The store answers"]);
    assert!(!part.text.contains("<html"), "{}", part.text);
}

#[tokio::test]
async fn callers_are_listed_without_what_proves_them() {
    let site = GuardedSite::start(&[
        ("boss", "admin", "*"),
        ("vera", "viewer", "default,eu-*"),
        ("watch", "viewer", "*"),
    ]);
    let mut browser = site.browser("boss").await;
    let page = browser.get("/console/callers").await;
    page.assert_has(&["boss", "vera", "<code>eu-*</code>", "viewer", "expires", "unlimited calls"]);
    let token = site.token("vera");
    // A secret may contain the character that parts a token.
    let secret = token.splitn(3, '_').nth(2).unwrap();
    assert!(!page.text.contains(secret) && !page.text.contains("sha256"), "{}", page.text);
    let rest = browser.get("/console/callers?after=1.1%3Dboss").await;
    assert!(!rest.text.contains("<th scope=\"row\">boss</th>"));
    rest.assert_has(&["<th scope=\"row\">vera</th>"]);

    let mut watcher = site.browser("watch").await;
    watcher.get("/console/health").await.assert_has(&["The store answers"]);
    assert_eq!(watcher.get("/console/callers").await.status, 403);
}

#[tokio::test]
async fn calls_of_others_are_in_the_rates() {
    let site = Site::with_sample();
    let mut client = Client::connect(&site.server.url).await;
    client.resolve(testkit::calls::handle("nobody")).await.unwrap_err();
    let mut browser = site.browser().await;
    let health = browser.get("/console/health").await;
    health.assert_has(&["<th scope=\"row\">ResolveIdentity</th>", "NOT_FOUND"]);
}

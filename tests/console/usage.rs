//! Usage: bars, their tables, and what is too much for one plot.

use polynym_proto::v1;
use testkit::calls::{Client, handle};

use crate::browser::Site;

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_plotted_and_listed() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("embedded:{}", folder.path().join("store").display());
    let site = Site::start(&["--store", &store]);
    let mut browser = site.browser().await;
    let empty = browser.post("/console/tenants", &[("name", "acme")]).await;
    empty.assert_has(&["Policies of acme"]);
    let usage = "/console/t/acme/usage";
    browser.get(usage).await.assert_has(&["Nothing was counted in this period"]);
    browser.post("/console/t/acme/search", &[("q", "@joe")]).await.assert_has(&["Nobody owns it"]);
    let mut client = Client::connect(&site.server.url).await;
    let (tenant, identifier) = ("acme".to_owned(), Some(handle("joe")));
    let request = v1::ResolveIdentityRequest { tenant, identifier, ..Default::default() };
    client.directory.resolve_identity(request).await.unwrap_err();
    // A server that stops writes what it has counted.
    site.server.signal("TERM");
    assert!(tokio::task::block_in_place(|| site.server.wait()).success());

    let site = Site::start(&["--store", &store]);
    let mut browser = site.browser().await;
    let calls = browser.get(usage).await;
    calls.assert_has(&[
        "Calls by method, last 24 hours, by hour (UTC)",
        "<svg class=\"plot\"",
        "class=\"bar-1\"",
        "CheckIdentity",
        "GetTenant",
        "polynym usage --tenant acme --since 86400s --metric &#39;calls.*&#39;",
    ]);
    assert!(!calls.text.contains("style=") && !calls.text.contains("stroke=\"#"));
    let kinds = browser.get(&format!("{usage}?by=kind&period=1h")).await;
    kinds.assert_has(&["handle, not found", "last hour, by minute"]);
    let callers = browser.get(&format!("{usage}?by=caller&period=7d&interval=day")).await;
    callers.assert_has(&["<span dir=\"auto\">anonymous</span>", "last 7 days, by day"]);
    let fine = browser.get(&format!("{usage}?period=1y&interval=minute")).await;
    fine.assert_has(&["too short for this period", "last year, by day"]);
    let callers = browser.get("/console/callers").await;
    callers.assert_has(&["This server asks for no credentials", "anonymous", "calls"]);
    assert!(calls.text.len() < 100_000 && fine.text.len() < 100_000);
}

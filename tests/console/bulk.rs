//! Bulk changes.

use std::time::Duration;

use polynym_proto::v1;
use testkit::calls::{Client, handle, text, user};
use testkit::scenarios::bulk::{changed, create_users, disable, get, start, until_changed};

use crate::browser::{Answer, Browser, Site};
use crate::commands::run_both;
use crate::tokens::GuardedSite;

const BULK: &str = "/console/t/default/bulk";
const NEW: &str = "/console/t/default/bulk/new";
const SELECTION: &str = "/console/t/default/bulk/selection";

/// Loads the page of a bulk change until it has ended.
pub async fn ended(browser: &mut Browser, path: &str) -> Answer {
    loop {
        let page = browser.get(path).await;
        if !page.text.contains("class=\"state running\"") {
            return page;
        }
        let stop = format!("{}/stop", without_query(path));
        page.assert_has(&["Refresh", "data-hx-trigger=\"every ", &stop]);
        assert!(!page.text.contains("and undo"), "it cannot be undone while it runs");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn without_query(path: &str) -> &str {
    path.split('?').next().unwrap()
}

/// A server with three users of one team, of whom one is disabled.
async fn team(arguments: &[&str]) -> (Site, Client, Vec<String>) {
    let site = Site::start(arguments);
    let mut client = Client::connect(&site.server.url).await;
    let mut ids = Vec::new();
    for name in ["ana", "bo", "cy"] {
        let attributes = [("team".to_owned(), text("search"))].into();
        let person = v1::User { attributes, ..user(name, vec![handle(name)]) };
        ids.push(client.create(person).await.unwrap().user_id);
    }
    client.disable(&ids[2]).await.unwrap();
    (site, client, ids)
}

#[tokio::test]
async fn selected_users_are_deleted_and_restored() {
    let (site, mut client, ids) = team(&[]).await;
    let mut browser = site.browser().await;
    let found = browser.post("/console/t/default/search", &[("q", "")]).await;
    found.assert_has(&["Change the selected users", "aria-label=\"Select ana\"", "3 in all"]);
    let form = browser.post(SELECTION, &[("user", &ids[0]), ("user", &ids[1])]).await;
    form.assert_has(&["2 selected users", &ids[0], "StartBulkChange"]);
    assert!(!form.text.contains("<label for=\"filter\">"));

    let tried = browser.submit(&form, NEW, &[("action", "delete")]).await;
    let tried = ended(&mut browser, &tried.path).await;
    tried.assert_has(&["<dt>Would change</dt><dd>2</dd>", "The first selected users", ">bo</a>"]);
    let mut other = site.browser().await;
    assert!(!other.get(&tried.path).await.text.contains("Apply it"), "another session's selection");
    let apply = format!("{}/apply", without_query(&tried.path));
    let applied = browser.submit(&tried, &apply, &[("reason", "left")]).await;
    ended(&mut browser, &applied.path).await.assert_has(&["<dt>Changed</dt><dd>2</dd>"]);
    // It is applied once, also by a page that was open before.
    let page = browser.get(&tried.path).await;
    page.assert_has(&["This dry run was applied", &applied.path]);
    assert!(!page.text.contains("Apply it"));
    assert_eq!(browser.submit(&tried, &apply, &[]).await.path, applied.path);
    let mut states = Vec::new();
    for id in &ids {
        states.push(client.get(id).await.unwrap().state());
    }
    assert_eq!(states, [v1::State::Deleted, v1::State::Deleted, v1::State::Disabled]);

    let form = browser.post(SELECTION, &[("user", &ids[0]), ("user", &ids[1])]).await;
    let tried = browser.submit(&form, NEW, &[("action", "undelete")]).await;
    let tried = ended(&mut browser, &tried.path).await;
    tried.assert_has(&["restore users", "Restore 2 users"]);
    let apply = format!("{}/apply", without_query(&tried.path));
    let applied = browser.submit(&tried, &apply, &[]).await;
    ended(&mut browser, &applied.path).await.assert_has(&["<dt>Changed</dt><dd>2</dd>"]);
    assert_eq!(client.get(&ids[0]).await.unwrap().state(), v1::State::Active);
}

#[tokio::test]
async fn two_selected_users_are_merged() {
    let (site, _client, ids) = team(&[]).await;
    let mut browser = site.browser().await;
    let merge = ("merge", "yes");
    let both = browser.post(SELECTION, &[("user", &ids[1]), ("user", &ids[0]), merge]).await;
    assert!(both.path.ends_with(&format!("/users/{}/merge/{}", ids[1], ids[0])), "{}", both.path);
    both.assert_has(&["Merge two users"]);
    let all: Vec<_> = ids.iter().map(|id| ("user", &**id)).chain([merge]).collect();
    browser.post(SELECTION, &all).await.assert_has(&["Select exactly two users to merge them"]);
    browser.post(SELECTION, &[("user", "nobody")]).await.assert_has(&["tick the boxes"]);
}

async fn is_disabled(client: &mut Client, id: &str) -> bool {
    client.get(id).await.unwrap().state() == v1::State::Disabled
}

#[tokio::test]
async fn users_that_a_search_found_change_after_a_dry_run() {
    let (site, mut client, ids) = team(&[]).await;
    let mut browser = site.browser().await;
    browser.get(BULK).await.assert_has(&["No bulk changes in the last 30 days"]);
    let search = "/console/t/default/search";
    let found = browser.post(search, &[("q", "attributes.team = \"search\"")]).await;
    let form = browser.get(&found.attribute("href", NEW)).await;
    form.assert_has(&["attributes.team = &#34;search&#34;</textarea>", "polynym bulk start"]);

    let filter = ("filter", "attributes.team = \"search\"");
    let fields = [filter, ("action", "disable"), ("reason", "team dissolved")];
    let tried = browser.submit(&form, NEW, &fields).await;
    let again = browser.submit(&form, NEW, &fields).await;
    assert_eq!(tried.path, again.path, "the same form starts one dry run");
    let tried = ended(&mut browser, &tried.path).await;
    tried.assert_has(&["Dry run", ">completed<", "<dt>Would change</dt><dd>2</dd>"]);
    tried.assert_has(&["<dt>Already so</dt><dd>1</dd>", "Disable 2 users", ">ana</a>"]);
    assert!(!is_disabled(&mut client, &ids[0]).await);

    let apply = format!("{}/apply", tried.path);
    let applied = browser.submit(&tried, &apply, &[("reason", "team dissolved")]).await;
    let again = browser.submit(&tried, &apply, &[("reason", "team dissolved")]).await;
    assert_eq!(applied.path, again.path, "the same form starts one bulk change");
    let applied = ended(&mut browser, &applied.path).await;
    applied.assert_has(&[
        "<dt>Changed</dt><dd>2</dd>",
        "team dissolved",
        "Users of this change",
        "/undo\">Undo</a>",
    ]);
    for id in &ids {
        assert!(is_disabled(&mut client, id).await);
    }
    let history = browser.get(&applied.attribute("href", "/console/t/default/operations/")).await;
    history.assert_has(&["disabled", "team dissolved", &ids[0]]);
    let list = browser.get(BULK).await;
    list.assert_has(&["Dry run: disable users", ">disable users</a>"]);
    assert_eq!(list.text.matches("class=\"state completed\"").count(), 2);
    for page in [&list, &applied, &browser.get(NEW).await] {
        run_both(&site, page).await;
    }
}

#[tokio::test]
async fn the_dry_run_of_a_deletion_says_until_when_users_can_be_restored() {
    let (site, mut client, ids) = team(&[]).await;
    let mut browser = site.browser().await;
    let form = browser.get(NEW).await;
    let fields = [("filter", "state = DISABLED"), ("action", "delete")];
    let tried = browser.submit(&form, NEW, &fields).await;
    let tried = ended(&mut browser, &tried.path).await;
    tried.assert_has(&["Delete 1 user<", "You can restore the deleted users until <time"]);
    let applied = browser.submit(&tried, &format!("{}/apply", tried.path), &[]).await;
    ended(&mut browser, &applied.path).await.assert_has(&["<dt>Changed</dt><dd>1</dd>"]);
    assert_eq!(client.get(&ids[2]).await.unwrap().state(), v1::State::Deleted);
}

#[tokio::test]
async fn a_bulk_change_is_stopped_and_resumed() {
    let (site, mut client, _) = team(&[]).await;
    create_users(&mut client, 1_000).await;
    let mut browser = site.browser().await;
    let request = v1::StartBulkChangeRequest {
        bulk_id: "leavers".to_owned(),
        filter: "attributes.n >= 0".to_owned(),
        action: disable(),
        ..Default::default()
    };
    start(&mut client, request).await;
    until_changed(&mut client, "leavers", 100).await;
    let page = format!("{BULK}/leavers");
    let stopped = browser.post(&format!("{page}/stop"), &[]).await;
    let record = get(&mut client, "leavers").await;
    // It may end before it is stopped.
    if record.state() == v1::BulkChangeState::Stopped {
        stopped.assert_has(&["class=\"state stopped\"", &format!("{page}/resume")]);
        assert!(changed(&record) < 1_000, "{record:?}");
    }
    browser.post(&format!("{page}/resume"), &[]).await;
    let all = ended(&mut browser, &page).await;
    all.assert_has(&[
        ">completed<",
        "<dt>Changed</dt><dd>1000</dd>",
        "Users of this change",
        "/undo\">Undo</a>",
    ]);
}

#[tokio::test]
async fn failures_can_be_downloaded() {
    let (site, _client, mut ids) = team(&["--max-attributes", "1"]).await;
    let mut browser = site.browser().await;
    let form = browser.get(NEW).await;
    let set = [("action", "set"), ("attribute", "plan"), ("type", "string"), ("text", "free")];
    let tried = browser.submit(&form, NEW, &set).await;
    let tried = ended(&mut browser, &tried.path).await;
    tried.assert_has(&["<dt>Would change</dt><dd>0</dd>", "<code>LIMIT_EXCEEDED</code>: 3"]);
    assert!(!tried.text.contains("Apply it"), "there is nothing to apply");
    let rejects = browser.get(&tried.attribute("href", &format!("{}/failures", tried.path))).await;
    ids.sort();
    let rows: Vec<_> = ids.iter().map(|id| format!("{id},LIMIT_EXCEEDED\r\n")).collect();
    let mut lines: Vec<_> = rejects.text.split_inclusive('\n').collect();
    assert_eq!(lines.remove(0), "user_id,reason\r\n");
    lines.sort_unstable();
    assert_eq!(lines, rows);
    assert!(rejects.response.header("content-disposition").contains("failures.csv"));

    // Stopping and resuming what has ended changes nothing.
    for action in ["stop", "resume"] {
        let path = format!("{}/{action}", tried.path);
        browser.post(&path, &[]).await.assert_has(&[">completed<"]);
        browser.get(&path).await.assert_has(&[">completed<"]);
    }
    browser.headers = vec![("hx-request", "true".to_owned())];
    let part = browser.get(&tried.path).await;
    part.assert_has(&["<div id=\"bulk\">", "Would change"]);
    assert!(!part.text.contains("<html"), "a script gets the part that changes");
}

#[tokio::test]
async fn a_wrong_form_keeps_what_was_typed() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let form = browser.get(NEW).await;
    for (fields, error) in [
        (vec![("filter", "state = AWAY"), ("action", "disable")], "FILTER_INVALID"),
        (vec![("filter", "state = ACTIVE")], "Choose what to do"),
        (vec![("filter", "state = ACTIVE"), ("action", "remove")], "Name the attribute."),
        (
            vec![("action", "set"), ("attribute", "age"), ("type", "int"), ("text", "old")],
            "Type a whole number",
        ),
    ] {
        let refused = browser.submit(&form, NEW, &fields).await;
        assert_eq!(refused.status, 422, "{fields:?}");
        refused.assert_has(&[error, fields[0].1]);
    }
    assert_eq!(browser.get(&format!("{BULK}/none")).await.status, 404);
}

#[tokio::test]
async fn a_viewer_sees_bulk_changes_and_cannot_make_any() {
    let site = GuardedSite::start(&[("ana", "viewer", "*")]);
    let mut browser = site.browser("ana").await;
    let list = browser.get(BULK).await;
    assert!(!list.text.contains("New bulk change"));
    assert_eq!(browser.get(NEW).await.status, 403);
    let fields = [("filter", ""), ("action", "delete")];
    for path in [NEW.to_owned(), format!("{BULK}/x/stop"), format!("{BULK}/x/apply")] {
        assert_eq!(browser.post(&path, &fields).await.status, 403, "{path}");
    }
}

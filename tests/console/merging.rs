//! Merging users, and undoing it.

use polynym_proto::v1;
use testkit::calls::{Client, email, handle, text, user};

use crate::browser::{Answer, Browser, Site, path};
use crate::commands::run_both;
use crate::tokens::GuardedSite;

const USERS: &str = "/console/t/default/users";

/// A server with Joe and Joseph, of different teams.
struct Pair {
    site: Site,
    client: Client,
    joe: String,
    joseph: String,
}

impl Pair {
    async fn new() -> Self {
        let site = Site::start(&[]);
        let mut client = Client::connect(&site.server.url).await;
        let joe = of_team("Joe", "search", vec![email("joe@example.com"), handle("joe")]);
        let joseph = of_team("Joseph", "payments", vec![email("joseph@example.com")]);
        let joe = client.create(joe).await.unwrap().user_id;
        let joseph = client.create(joseph).await.unwrap().user_id;
        Self { site, client, joe, joseph }
    }

    fn merge(&self) -> String {
        format!("{USERS}/{}/merge/{}", self.joe, self.joseph)
    }

    fn unmerge(&self) -> String {
        format!("{USERS}/{}/unmerge/{}", self.joe, self.joseph)
    }

    async fn history(&mut self, id: &str) -> Vec<v1::Event> {
        let request = v1::ListHistoryRequest {
            user: Some(v1::list_history_request::User::UserId(id.to_owned())),
            ..Default::default()
        };
        self.client.directory.list_history(request).await.unwrap().into_inner().events
    }
}

fn of_team(name: &str, team: &str, identifiers: Vec<v1::Identifier>) -> v1::User {
    v1::User { attributes: [("team".to_owned(), text(team))].into(), ..user(name, identifiers) }
}

fn names(user: &v1::User) -> Vec<String> {
    let values = user.identities.iter().map(|identity| identity.display.clone());
    values.collect()
}

async fn choose(browser: &mut Browser, id: &str, other: &str) -> Answer {
    browser.post(&format!("{USERS}/{id}/merge"), &[("other", other)]).await
}

#[tokio::test]
async fn users_are_merged_after_a_preview_and_separated_again() {
    let mut pair = Pair::new().await;
    let mut browser = pair.site.browser().await;
    let preview = choose(&mut browser, &pair.joe, "Joseph@Example.com").await;
    assert_eq!(preview.path, pair.merge());
    preview.assert_has(&["Conflicts", "search", "<del>payments</del>", "undo the merge until"]);
    preview
        .assert_has(&["stays, and is primary no longer", "(<span class=\"quiet\" dir=\"auto\">"]);
    assert!(!preview.text.contains("<del>email:"), "{}", preview.text);
    run_both(&pair.site, &preview).await;
    assert_eq!(pair.client.get(&pair.joseph).await.unwrap().display_name, "Joseph");

    let other = browser.get(&format!("{}?keep=other", pair.merge())).await;
    other.assert_has(&["<del>search</del>", "<del>Joe</del>"]);
    let merged = browser.submit(&other, &pair.merge(), &[("reason", "Zoë asked")]).await;
    assert!(merged.path.starts_with(&format!("{USERS}/{}", pair.joe)), "{}", merged.path);
    merged.assert_has(&["The users are merged: <a", "Undo the merge", "joseph@example.com"]);
    merged.assert_has(&[">Joseph</th>"]);
    let history = browser.get(&format!("{USERS}/{}/history", pair.joseph)).await;
    history.assert_has(&["History of Joseph<"]);
    merged.assert_has(&[
        &format!("users/{}/history\"><bdi>Joseph</bdi></a> is a part of", pair.joseph),
        &format!("users/{}\"><bdi>Joseph</bdi></a> now", pair.joe),
    ]);
    let joe = pair.client.get(&pair.joseph).await.unwrap();
    assert_eq!((&joe.user_id, &*joe.display_name), (&pair.joe, "Joseph"));
    let joe = pair.joe.clone();
    assert_eq!(pair.history(&joe).await[0].reason, "Zoë asked");

    let list = browser.get(&format!("{USERS}/{joe}/unmerge")).await;
    list.assert_has(&["Merged users", &pair.unmerge(), "joseph@example.com"]);
    let undo = browser.get(&merged.attribute("href", &pair.unmerge())).await;
    undo.assert_has(&["What comes back", "Nothing: both users become what they were"]);
    run_both(&pair.site, &undo).await;
    let restored = browser.submit(&undo, &pair.unmerge(), &[]).await;
    restored.assert_has(&["<h1 dir=\"auto\">Joseph", "payments", "The merge is undone: <a"]);
    restored.assert_has(&[
        &format!("users/{}\"><bdi>Joseph</bdi></a> is a user of its own again", pair.joseph),
        &format!("users/{}\"><bdi>Joe</bdi></a>.</p>", pair.joe),
    ]);
    assert_eq!(pair.client.get(&joe).await.unwrap().display_name, "Joe");
}

#[tokio::test]
async fn a_form_that_is_sent_twice_merges_once() {
    let mut pair = Pair::new().await;
    let mut browser = pair.site.browser().await;
    let preview = browser.get(&pair.merge()).await;
    for _ in 0..2 {
        let merged = browser.submit(&preview, &pair.merge(), &[]).await;
        merged.assert_has(&["The users are merged: "]);
    }
    let joe = pair.joe.clone();
    assert_eq!(pair.history(&joe).await.len(), 2, "created, merged");
    let again = browser.get(&pair.merge()).await;
    assert_eq!(again.path, pair.unmerge(), "the preview of a merge that happened leads to undoing");

    for _ in 0..2 {
        browser.submit(&again, &pair.unmerge(), &[]).await.assert_has(&[">Joseph"]);
    }
    assert_eq!(pair.history(&joe).await.len(), 3);
}

#[tokio::test]
async fn what_changed_since_the_preview_is_shown_before_it_is_applied() {
    let mut pair = Pair::new().await;
    let mut browser = pair.site.browser().await;
    let preview = browser.get(&pair.merge()).await;
    pair.client.link(&pair.joseph, handle("sepp")).await.unwrap();
    let stale = browser.submit(&preview, &pair.merge(), &[("reason", "same person")]).await;
    assert_eq!(stale.status, 409);
    let linked = "identity: none → handle:sepp (primary";
    stale.assert_has(&["Somebody changed this", "LinkIdentity", linked]);
    stale.assert_has(&["Apply again", "value=\"same person\""]);

    let renamed = v1::User { display_name: "Joey".to_owned(), ..user("", Vec::new()) };
    let renamed = v1::User { user_id: pair.joe.clone(), ..renamed };
    pair.client.update(renamed, &["display_name"]).await.unwrap();
    let stale = browser.submit(&stale, &pair.merge(), &[]).await;
    assert_eq!(stale.status, 409);
    stale.assert_has(&["UpdateUser", "name: Joe → Joey"]);
    assert_eq!(pair.client.get(&pair.joseph).await.unwrap().user_id, pair.joseph);

    browser.submit(&stale, &pair.merge(), &[]).await.assert_has(&["The users are merged: "]);
    let merged = pair.client.get(&pair.joe).await.unwrap();
    assert_eq!(names(&merged), ["joe@example.com", "joe", "joseph@example.com", "sepp"]);

    let undo = browser.get(&pair.unmerge()).await;
    pair.client.unlink(&pair.joe, email("joseph@example.com")).await.unwrap();
    let stale = browser.submit(&undo, &pair.unmerge(), &[]).await;
    assert_eq!(stale.status, 409);
    stale.assert_has(&["UnlinkIdentity", "These parts have changed", "<li dir=\"auto\">email:"]);
    browser.submit(&stale, &pair.unmerge(), &[]).await.assert_has(&[">Joseph"]);
}

#[tokio::test]
async fn the_other_user_is_found_by_what_names_it() {
    let mut pair = Pair::new().await;
    pair.client.create(user("Josephine", vec![handle("josy")])).await.unwrap();
    let mut browser = pair.site.browser().await;
    assert_eq!(choose(&mut browser, &pair.joe, &pair.joseph).await.path, pair.merge());
    let found = choose(&mut browser, &pair.joe, "jos").await;
    found.assert_has(&["Compare with Joseph<", "Compare with Josephine<", &pair.merge()]);
    assert!(!found.text.contains("Compare with Joe<") && !found.path.contains("jos"));
    for (typed, error) in [
        ("nobody@example.com", "No user matches this."),
        ("@joe", "This is the same user already"),
        ("", "Type an id, an identifier"),
    ] {
        let refused = choose(&mut browser, &pair.joe, typed).await;
        assert_eq!(refused.status, 422, "{typed}");
        refused.assert_has(&[error, &format!("value=\"{typed}\"")]);
    }
    let missing = format!("{USERS}/00000000-0000-7000-8000-000000000000/merge");
    assert!([404, 422].contains(&browser.get(&missing).await.status));
}

#[tokio::test]
async fn a_viewer_can_neither_open_nor_send_a_merge() {
    let site = GuardedSite::start(&[("ana", "viewer", "*")]);
    let mut browser = site.browser("ana").await;
    let joe = path(&mut browser, "@joe").await;
    let grace = path(&mut browser, "@grace").await.replace(&format!("{USERS}/"), "");
    for path in ["merge", &format!("merge/{grace}"), &format!("unmerge/{grace}")] {
        let path = format!("{joe}/{path}");
        browser.get(&path).await.assert_has(&["This page needs the role registrar"]);
        assert_eq!(browser.post(&path, &[("other", &grace)]).await.status, 403, "{path}");
    }
}

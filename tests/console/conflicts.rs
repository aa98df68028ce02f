//! Changes that are refused, or sent twice.

use crate::browser::{HOME, Site, path, user};
use crate::users::{fill_in, id, identity};

#[tokio::test]
async fn a_taken_identifier_names_its_owner_and_moves() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let joe = path(&mut browser, "@joe").await;
    let grace = path(&mut browser, "@grace").await;
    let fields = [("kind", "handle"), ("value", "grace")];
    let taken = fill_in(&mut browser, &format!("{joe}/link"), &fields).await;
    assert_eq!(taken.status, 409);
    taken.assert_has(&[
        "IDENTITY_TAKEN",
        ">Grace Okafor</a>",
        "value=\"grace\"",
        "Merge the users",
    ]);
    let merge = format!("{joe}/merge/{}", id(&grace));
    taken.assert_has(&[&merge]);

    let moving = format!("{grace}/move");
    let preview = browser.submit(&taken, &moving, &[]).await;
    preview.assert_has(&["Move an identity", "<dd>no</dd>", ">Joe Smith</a>"]);
    user(&mut browser, "@grace").await.assert_has(&["Grace Okafor"]);
    let moved = browser.submit(&preview, &moving, &[("apply", "yes")]).await;
    moved.assert_has(&["The identity was moved to this user.", "<h1 dir=\"auto\">Joe Smith"]);
    user(&mut browser, "@grace").await.assert_has(&["<h1 dir=\"auto\">Joe Smith"]);

    // Back again, to a user whom words find among others.
    let handle = identity(&mut browser, &joe, "handle:grace").await;
    let moving = format!("{joe}/move");
    let none = browser.submit(&handle, &moving, &[("user", "nobody like this")]).await;
    none.assert_has(&["No user matches this.", "value=\"nobody like this\""]);
    assert_eq!(none.status, 422);
    let several = browser.submit(&handle, &moving, &[("user", "example")]).await;
    several.assert_has(&["Choose the user who gets it", ">Alice Example<", ">Carol Example<"]);
    let chosen = [("to_id", &*id(&grace))];
    let preview = browser.submit(&several, &moving, &chosen).await;
    let moved = browser.submit(&preview, &moving, &[("apply", "yes")]).await;
    moved.assert_has(&["The identity was moved to this user.", "<h1 dir=\"auto\">Grace Okafor"]);
}

#[tokio::test]
async fn a_held_identifier_is_free_once_an_admin_releases_it() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let joe = path(&mut browser, "@joe").await;
    let grace = path(&mut browser, "@grace").await;
    let handle = identity(&mut browser, &joe, "handle:joe").await;
    browser.submit(&handle, &format!("{joe}/unlink"), &[]).await;
    let link = format!("{grace}/link");
    let fields = [("kind", "handle"), ("value", "@joe")];
    let held = fill_in(&mut browser, &link, &fields).await;
    held.assert_has(&["IDENTITY_HELD", "Held until", "Release the hold first", "value=\"@joe\""]);
    assert_eq!(held.status, 409);
    let released = [("kind", "handle"), ("value", "@joe"), ("release", "yes")];
    let linked = browser.submit(&held, &link, &released).await;
    linked.assert_has(&["The identity was linked."]);
    user(&mut browser, "@joe").await.assert_has(&["<h1 dir=\"auto\">Grace Okafor"]);
}

#[tokio::test]
async fn identifiers_that_nobody_can_have_say_why() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let joe = path(&mut browser, "@joe").await;
    let grace = path(&mut browser, "@grace").await;
    // Cyrillic letters that look like `ape`.
    let fields = [("kind", "handle"), ("value", "аре")];
    fill_in(&mut browser, &format!("{grace}/link"), &fields).await.assert_has(&["was linked"]);
    let link = format!("{joe}/link");
    for (kind, value, text) in [
        ("handle", "ape", "IDENTITY_CONFUSABLE"),
        ("handle", "admin", "IDENTITY_RESERVED"),
        ("email", "no address", "IDENTIFIER_INVALID"),
        ("", "joe", "choose the kind"),
        ("", "", "Type an identifier"),
        ("social", "github", "a slash"),
    ] {
        let refused = fill_in(&mut browser, &link, &[("kind", kind), ("value", value)]).await;
        refused.assert_has(&[text, "aria-invalid=\"true\"", &format!("value=\"{value}\"")]);
        assert!(matches!(refused.status, 409 | 422), "{value}: {}", refused.status);
    }
}

#[tokio::test]
async fn a_change_of_another_tab_is_shown_before_it_is_overwritten() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let joe = path(&mut browser, "@joe").await;
    let form = format!("{joe}/name");
    let one = browser.get(&form).await;
    let other = browser.get(&form).await;
    let first = [("name", "Joe A. Smith"), ("reason", "as in the passport")];
    browser.submit(&one, &form, &first).await.assert_has(&["The display name was changed."]);
    let stale = browser.submit(&other, &form, &[("name", "Joseph")]).await;
    assert_eq!(stale.status, 409);
    stale.assert_has(&[
        "You in another tab, or somebody else, changed the user",
        "Joe A. Smith",
        "as in the passport",
        "value=\"Joseph\"",
        "Apply again",
    ]);
    user(&mut browser, "joe.smith@example.com")
        .await
        .assert_has(&["<h1 dir=\"auto\">Joe A. Smith"]);
    let applied = browser.submit(&stale, &form, &[("name", "Joseph")]).await;
    applied.assert_has(&["The display name was changed.", "<h1 dir=\"auto\">Joseph"]);
}

#[tokio::test]
async fn a_form_sent_twice_happens_once() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let joe = path(&mut browser, "@joe").await;
    let link = format!("{joe}/link");
    let form = browser.get(&link).await;
    let fields = [("kind", "email"), ("value", "joe@two.example")];
    for _ in 0..2 {
        let linked = browser.submit(&form, &link, &fields).await;
        linked.assert_has(&["The identity was linked.", "joe@two.example"]);
    }
    let other = [("kind", "email"), ("value", "joe@three.example")];
    let reused = browser.submit(&form, &link, &other).await;
    reused.assert_has(&["REQUEST_ID_REUSED", "value=\"joe@three.example\""]);
    browser.submit(&reused, &link, &other).await.assert_has(&["The identity was linked."]);

    let create = format!("{HOME}/users/new");
    let form = browser.get(&create).await;
    let fields = [("name", "Twice"), ("kind.1", "handle"), ("value.1", "twice")];
    let first = browser.submit(&form, &create, &fields).await;
    let second = browser.submit(&form, &create, &fields).await;
    first.assert_has(&["The user was created."]);
    assert_eq!(first.path, second.path);

    let purge = format!("{joe}/purge");
    let form = browser.get(&purge).await;
    for _ in 0..2 {
        let purged = browser.submit(&form, &purge, &[("confirmation", "Joe Smith")]).await;
        purged.assert_has(&["The user was purged"]);
    }
}

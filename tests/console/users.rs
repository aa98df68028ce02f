//! What can be done with one user.

use crate::browser::{Answer, Browser, HOME, Site, path, user};
use crate::tokens::GuardedSite;
use testkit::output::stdout;
use testkit::server::polynym;

/// The page of an identity.
pub async fn identity(browser: &mut Browser, user: &str, identity: &str) -> Answer {
    browser.post(&format!("{user}/identity"), &[("identity", identity)]).await
}

/// Opens the form at a path, and sends it with these fields.
pub async fn fill_in(browser: &mut Browser, path: &str, fields: &[(&str, &str)]) -> Answer {
    let page = browser.get(path).await;
    browser.submit(&page, path, fields).await
}

/// The id in the path of a user's page.
pub fn id(path: &str) -> String {
    path.rsplit('/').next().unwrap().to_owned()
}

#[tokio::test]
async fn identities_are_linked_changed_and_unlinked() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let joe = path(&mut browser, "@joe").await;
    let fields = [
        ("kind", ""),
        ("value", "(415) 555-0199"),
        ("region", "us"),
        ("verified", "yes"),
        ("verified_by", "call centre"),
        ("reason", "new number, größer"),
    ];
    let linked = fill_in(&mut browser, &format!("{joe}/link"), &fields).await;
    linked.assert_has(&["The identity was linked.", "+14155550199", "by call centre"]);

    let phone = identity(&mut browser, &joe, "phone:+14155550199").await;
    phone.assert_has(&["Make primary", "Mark as not verified", "Anybody can take it at once."]);
    assert!(!phone.path.contains("4155550199"), "{}", phone.path);
    let because = [("reason", "asked by phone, ticket 12")];
    let primary = browser.submit(&phone, &format!("{joe}/primary"), &because).await;
    primary.assert_has(&["The identity is the primary one of its kind."]);
    let phone = identity(&mut browser, &joe, "phone:+14155550199").await;
    assert!(!phone.text.contains("Make primary"));
    let because = [("reason", "the letter came back")];
    let unverified = browser.submit(&phone, &format!("{joe}/verify"), &because).await;
    unverified.assert_has(&["The identity is marked as not verified."]);
    let phone = identity(&mut browser, &joe, "phone:+14155550199").await;
    let by = [("verified_by", "a letter"), ("reason", "a second letter")];
    let verified = browser.submit(&phone, &format!("{joe}/verify"), &by).await;
    verified.assert_has(&["The identity is marked as verified.", "by a letter"]);

    let phone = identity(&mut browser, &joe, "phone:+14155550199").await;
    let new = [("kind", "email"), ("value", "Joe.New@Example.com")];
    let replaced = browser.submit(&phone, &format!("{joe}/replace"), &new).await;
    replaced.assert_has(&["The identity was replaced.", "joe.new@example.com"]);
    assert!(!replaced.text.contains("+14155550199"));
    let handle = identity(&mut browser, &joe, "handle:joe").await;
    handle.assert_has(&["Nobody else can take it for 30 days"]);
    let unlinked = browser.submit(&handle, &format!("{joe}/unlink"), &[]).await;
    unlinked.assert_has(&["The identity was unlinked."]);
    assert!(!unlinked.text.contains("handle:joe"));
    // The page of an identity that is gone leads to the user.
    let gone = identity(&mut browser, &joe, "handle:joe").await;
    gone.assert_has(&["The user no longer has this identity."]);
    let history = polynym(&["user", "history", &id(&joe), "--server", &site.server.url]);
    let history = stdout(&{ history }.output().unwrap());
    for reason in [
        "new number, größer",
        "asked by phone, ticket 12",
        "the letter came back",
        "a second letter",
    ] {
        assert!(history.contains(&format!("reason: {reason}")), "{reason}: {history}");
    }
    assert!(history.contains("identity made primary"), "{history}");
}

#[tokio::test]
async fn attributes_of_all_types_are_added_changed_and_removed() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let joe = path(&mut browser, "@joe").await;
    let add = format!("{joe}/attributes");
    for (name, own, text, shown) in [
        ("note", "string", "two\r\nlines", "two\nlines"),
        ("level", "int", "-3", "-3"),
        ("score", "double", "0.5", "0.5"),
        ("staff", "bool", "Yes", "yes"),
        ("joined", "time", "2026-01-31T12:00:00.5Z", "2026-01-31T12:00:00.500Z"),
        ("Ämter & mehr", "list", "a\r\nb c", "a\nb c"),
    ] {
        let fields = [("name", name), ("type", own), ("text", text)];
        let added = fill_in(&mut browser, &add, &fields).await;
        added.assert_has(&["The attribute was set.", shown]);
    }
    let wrong = [("name", "age"), ("type", "int"), ("text", "old")];
    let wrong = fill_in(&mut browser, &add, &wrong).await;
    wrong.assert_has(&["Type a whole number", "value=\"age\"", "old</textarea>"]);
    assert_eq!(wrong.status, 422);

    let level = browser.post(&format!("{joe}/attribute"), &[("attribute", "level")]).await;
    level.assert_has(&["<h1 dir=\"auto\">level</h1>", "-3</textarea>"]);
    assert!(!level.path.contains("level"), "{}", level.path);
    let changed = browser.submit(&level, &add, &[("type", "int"), ("text", "4")]).await;
    changed.assert_has(&["The attribute was set.", ">4</td>"]);
    let again = browser.post(&format!("{joe}/attribute"), &[("attribute", "level")]).await;
    let removed = browser.submit(&again, &add, &[("remove", "yes")]).await;
    removed.assert_has(&["The attribute was removed.", "joined"]);
    assert!(!removed.text.contains(">level</th>"));
}

#[tokio::test]
async fn a_user_is_disabled_deleted_restored_and_purged() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let joe = path(&mut browser, "@joe").await;
    for (action, text) in [
        ("disable", "The user was disabled."),
        ("enable", "The user was enabled."),
        ("delete", "The user was deleted."),
        ("undelete", "The user was restored."),
    ] {
        let done = fill_in(&mut browser, &format!("{joe}/{action}"), &[("reason", "a test")]).await;
        done.assert_has(&[text]);
    }
    let delete = browser.get(&format!("{joe}/delete")).await;
    delete.assert_has(&["You can restore the user until", "(in 2"]);
    let gone = browser.submit(&delete, &format!("{joe}/delete"), &[]).await;
    gone.assert_has(&["It can be restored until", "Restore</a>"]);
    assert!(!gone.text.contains("Link an identity"));

    let purge = format!("{joe}/purge");
    let wrong = fill_in(&mut browser, &purge, &[("confirmation", "joe")]).await;
    wrong.assert_has(&["nothing was purged", "Type the name or the id of the user"]);
    assert_eq!(wrong.status, 422);
    let purged = fill_in(&mut browser, &purge, &[("confirmation", &id(&joe))]).await;
    purged.assert_has(&["The user was purged"]);
    assert_eq!(browser.get(&joe).await.status, 404);
}

#[tokio::test]
async fn a_user_is_created_with_what_was_searched() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let search = [("q", "Ada@Example.com")];
    let free = browser.post(&format!("{HOME}/search"), &search).await;
    free.assert_has(&["Nobody owns it. It is free.", "Link it to a user"]);
    let create = free.attribute("href", &format!("{HOME}/users/new?"));
    let form = browser.get(&create).await;
    form.assert_has(&["value=\"Ada@Example.com\"", "Identity 1"]);
    let path = format!("{HOME}/users/new");
    let fields = [
        ("name", "Ada"),
        ("kind.1", "email"),
        ("value.1", "Ada@Example.com"),
        ("verified", "yes"),
        ("verified_by", "ticket 7"),
        ("attribute.1", "team"),
        ("type.1", "string"),
        ("text.1", "search"),
    ];
    let more = browser.submit(&form, &path, &[&fields[..], &[("add", "identity")]].concat()).await;
    more.assert_has(&["Identity 2", "value=\"Ada\"", "search</textarea>"]);
    let taken = [("kind.2", "handle"), ("value.2", "grace"), ("primary.2", "yes")];
    let refused = browser.submit(&more, &path, &[&fields[..], &taken[..]].concat()).await;
    refused.assert_has(&["IDENTITY_TAKEN", ">Grace Okafor</a>", "value=\"grace\" aria-invalid"]);
    let free = [("kind.2", "handle"), ("value.2", "ada"), ("primary.2", "yes")];
    let created = browser.submit(&refused, &path, &[&fields[..], &free[..]].concat()).await;
    created.assert_has(&["The user was created.", "ada@example.com", "by ticket 7", "search</td>"]);

    let free = browser.post(&format!("{HOME}/search"), &[("q", "ada@example.org")]).await;
    let link = free.attribute("href", &format!("{HOME}/link?"));
    let choose = browser.get(&link).await;
    choose.assert_has(&["Link the identifier to a user", "ada@example.org"]);
    let found = browser.submit(&choose, &format!("{HOME}/link"), &[("user", "example")]).await;
    found.assert_has(&["Choose the user", "Alice Example"]);
    let form = browser.submit(&choose, &format!("{HOME}/link"), &[("user", "@ada")]).await;
    form.assert_has(&["<h1>Link an identity</h1>", "value=\"ada@example.org\""]);
}

/// A form refuses an address with a name, and has the address alone in its field.
#[tokio::test]
async fn the_address_in_a_longer_text_is_offered() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let joe = path(&mut browser, "@joe").await;
    let link = format!("{joe}/link");
    for (kind, pasted) in
        [("", "\"Smith, Joe\" <offered@example.com>"), ("email", "mailto:offered@example.com")]
    {
        let refused = fill_in(&mut browser, &link, &[("kind", kind), ("value", pasted)]).await;
        assert_eq!(refused.status, 422);
        refused.assert_has(&[
            "Write the address alone. The field has offered@example.com now.",
            "value=\"offered@example.com\" aria-invalid",
        ]);
    }
    let path = format!("{HOME}/users/new");
    let fields = [("name", "Joe"), ("value.1", "Joe <offered@example.com>")];
    let refused = fill_in(&mut browser, &path, &fields).await;
    refused.assert_has(&["The field has offered@example.com now.", "value=\"Joe\""]);
    let offered = [("name", "Joe"), ("value.1", "offered@example.com")];
    let created = browser.submit(&refused, &path, &offered).await;
    created.assert_has(&["The user was created.", "offered@example.com"]);
    // A number in international form needs no country.
    let fields = [("kind", "phone"), ("value", "\u{202a}(+33) 6 12 34 56 78\u{202c}")];
    let linked = fill_in(&mut browser, &link, &[&fields[..], &[("region", "us")]].concat()).await;
    linked.assert_has(&["The identity was linked.", "+33612345678"]);
}

#[tokio::test]
async fn notices_are_sent_once_read_and_deleted() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let joe = path(&mut browser, "@joe").await;
    let inbox = format!("{joe}/inbox");
    browser.get(&inbox).await.assert_has(&["No notices."]);
    let send = format!("{inbox}/send");
    let wrong = [("subject", "Terms"), ("days", "soon")];
    fill_in(&mut browser, &send, &wrong).await.assert_has(&["a number of days", "value=\"Terms\""]);
    let none = fill_in(&mut browser, &send, &[("subject", "")]).await;
    none.assert_has(&["aria-invalid=\"true\""]);
    let form = browser.get(&send).await;
    let long = format!("{}END", "word ".repeat(200));
    let fields = [("subject", "Terms have changed"), ("body", &*long), ("days", "7")];
    for _ in 0..2 {
        let sent = browser.submit(&form, &send, &fields).await;
        sent.assert_has(&["The notice was sent.", "1 unread", "Show the whole notice"]);
        assert!(!sent.text.contains("END"));
    }
    browser.get(&joe).await.assert_has(&["Inbox (1 unread)"]);
    let list = browser.get(&inbox).await;
    let open = list.attribute("href", &format!("{inbox}?unread=false")).replace("&amp;", "&");
    browser.get(&open).await.assert_has(&["END"]);
    let notice = list.attribute("name=\"notice\" value", "");
    let read = browser.post(&format!("{inbox}/read"), &[("notice", &notice)]).await;
    read.assert_has(&["marked as read", "0 unread"]);
    fill_in(&mut browser, &send, &[("subject", "Second")]).await.assert_has(&["1 unread"]);
    let list = browser.get(&format!("{inbox}?unread=true")).await;
    list.assert_has(&["Mark all as read"]);
    assert!(!list.text.contains("Terms have changed"));
    let latest = list.attribute("name=\"latest\" value", "20");
    let fields = [("all", "yes"), ("latest", &*latest)];
    let all = browser.post(&format!("{inbox}/read"), &fields).await;
    all.assert_has(&["0 unread"]);
    for _ in 0..2 {
        let deleted = browser.post(&format!("{inbox}/delete"), &[("notice", &notice)]).await;
        deleted.assert_has(&["The notice was deleted.", "Second"]);
        assert!(!deleted.text.contains("Terms have changed"));
    }
}

#[tokio::test]
async fn merged_users_are_shown_and_purged_with_their_primary() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let joe = path(&mut browser, "@joe").await;
    let grace = id(&path(&mut browser, "@grace").await);
    let server = ["--server", &site.server.url];
    let merge = [&["user", "merge", "handle:joe", "handle:grace"][..], &server[..]].concat();
    stdout(&polynym(&merge).output().unwrap());
    let page = browser.get(&joe).await;
    page.assert_has(&["Merged users", &grace, "grace.okafor@example.com"]);
    page.assert_has(&[&format!("{joe}/unmerge/{grace}")]);
    let merged = browser.get(&format!("{HOME}/users/{grace}")).await;
    merged.assert_has(&["was merged into this one", "<h1 dir=\"auto\">Joe Smith"]);
    let purge = browser.get(&format!("{joe}/purge")).await;
    purge.assert_has(&[&format!("<code>{grace}</code>: a user that was merged into it")]);
    let undo = [&["user", "unmerge", "handle:joe", &grace][..], &server[..]].concat();
    stdout(&polynym(&undo).output().unwrap());
    assert!(!browser.get(&joe).await.text.contains("Merged users"));
}

#[tokio::test]
async fn a_role_sees_and_does_no_more_than_it_may() {
    let mutations = [
        "link",
        "unlink",
        "replace",
        "move",
        "verify",
        "primary",
        "name",
        "attributes",
        "disable",
        "enable",
        "delete",
        "undelete",
        "inbox/send",
        "inbox/read",
        "inbox/delete",
    ];
    for role in ["resolver", "viewer", "registrar"] {
        let site = GuardedSite::start(&[("ana", role, "*")]);
        let mut browser = site.browser("ana").await;
        let page = user(&mut browser, "@joe").await;
        let joe = page.path.clone();
        assert_eq!(page.text.contains(">History</a>"), role != "resolver", "{role}");
        assert_eq!(page.text.contains(">Link an identity</a>"), role == "registrar", "{role}");
        assert!(!page.text.contains(">Purge</a>"), "{role}");
        let handle = identity(&mut browser, &joe, "handle:joe").await;
        assert_eq!(handle.text.contains("Unlink identity"), role == "registrar", "{role}");
        let fields = [("identity", "handle:joe"), ("kind", "handle"), ("value", "joe2")];
        if role != "registrar" {
            for action in mutations {
                let refused = browser.post(&format!("{joe}/{action}"), &fields).await;
                assert_eq!(refused.status, 403, "{role}: {action}");
            }
            let refused = browser.post(&format!("{HOME}/users/new"), &[("name", "New")]).await;
            assert_eq!(refused.status, 403, "{role}");
        }
        let purge = format!("{joe}/purge");
        assert_eq!(browser.get(&purge).await.status, 403, "{role}");
        let confirmed = [("confirmation", "Joe Smith")];
        assert_eq!(browser.post(&purge, &confirmed).await.status, 403, "{role}");
        let released = [("held", "handle:joe"), ("release", "yes"), fields[1], fields[2]];
        assert_eq!(browser.post(&format!("{joe}/link"), &released).await.status, 403, "{role}");
        browser.get(&joe).await.assert_has(&["<h1 dir=\"auto\">Joe Smith", "handle:joe"]);
    }
}

#[tokio::test]
async fn forms_follow_the_policies_of_the_tenant() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let server = ["--server", &site.server.url];
    for command in [
        &["attribute", "define", "level", "--type", "int"][..],
        &["tenant", "set", "--verified-wins", "on"],
    ] {
        stdout(&polynym(&[command, &server[..]].concat()).output().unwrap());
    }
    let joe = path(&mut browser, "@joe").await;
    let add = format!("{joe}/attributes");
    let fields = [("name", "level"), ("type", "string"), ("text", "high")];
    let refused = fill_in(&mut browser, &add, &fields).await;
    refused.assert_has(&[
        "ATTRIBUTE_INVALID",
        "requires this type: Whole number.",
        "high</textarea>",
    ]);

    let link = format!("{joe}/link");
    let form = browser.get(&link).await;
    form.assert_has(&["Verified wins in this tenant"]);
    let new = [("name", "Loser"), ("kind.1", "handle"), ("value.1", "wanted")];
    fill_in(&mut browser, &format!("{HOME}/users/new"), &new).await.assert_has(&["was created"]);
    let fields = [("kind", "handle"), ("value", "wanted"), ("verified", "yes")];
    browser.submit(&form, &link, &fields).await.assert_has(&["The identity was linked."]);
    user(&mut browser, "@wanted").await.assert_has(&["<h1 dir=\"auto\">Joe Smith"]);
}

#[tokio::test]
async fn a_large_user_has_small_pages() {
    let site = Site::start(&[]);
    let mut browser = site.browser().await;
    let mut command = polynym(&["user", "create", "--server", &site.server.url]);
    command.args(["--name", "<script>alert(1)</script>"]);
    for n in 0..100 {
        command.args(["--identity", &format!("handle:long-{n}-{}", "x".repeat(50))]);
    }
    for n in 0..50 {
        command.args(["--attribute", &format!("<b>{n:02}</b>={}", "\u{202e}\"&<".repeat(120))]);
    }
    stdout(&command.output().unwrap());
    let handle = format!("@long-7-{}", "x".repeat(50));
    let page = user(&mut browser, &handle).await;
    page.assert_has(&["100 identities", "50 attributes", "&#60;script&#62;"]);
    assert!(!page.text.contains("<script>alert") && !page.text.contains("<b>"));
    assert!(page.text.len() < 100_000, "{} bytes", page.text.len());
    let next = browser.get(&format!("{}?identities=75&attributes=25", page.path)).await;
    next.assert_has(&["long-99-", "&#60;b&#62;49", "Previous identities", "Previous attributes"]);
    assert!(next.text.len() < 100_000, "{} bytes", next.text.len());
    for form in ["link", "name", "purge", "delete", "inbox", "attributes"] {
        let form = browser.get(&format!("{}/{form}", page.path)).await;
        assert_eq!(form.status, 200);
        assert!(!form.text.contains("<script>alert") && form.text.len() < 100_000);
    }
}

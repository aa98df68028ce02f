//! The start page: what goes on, for those who may know it.

use testkit::calls::{Client, handle, user};

use crate::browser::{Answer, HOME, Site};
use crate::tokens::GuardedSite;

const START: &str = "/console/t/default/";

/// The part of the page with this id.
fn panel<'p>(page: &'p Answer, id: &str) -> &'p str {
    let begin = format!("<h2 id=\"{id}\">");
    let (_, rest) = page.text.split_once(&begin).unwrap_or_else(|| {
        panic!("no {id} at {}:\n{}", page.path, page.text);
    });
    rest.split("</section>").next().unwrap()
}

#[tokio::test]
async fn each_part_has_a_bounded_number_of_rows() {
    let site = Site::start(&[]);
    let mut client = Client::connect(&site.server.url).await;
    let mut browser = site.browser().await;
    let empty = browser.get(START).await;
    empty.assert_has(&["The users whose pages you open are here"]);
    for id in ["created", "deleted", "ended", "running", "saved"] {
        assert!(!empty.text.contains(&format!("<h2 id=\"{id}\">")), "{id}");
    }
    let mut ids = Vec::new();
    for n in 0..30 {
        let name = format!("person {n} {}", "\"<&".repeat(80));
        ids.push(client.create(user(&name, vec![handle(&format!("p{n}"))])).await.unwrap().user_id);
    }
    for id in &ids[..20] {
        client.delete(id).await.unwrap();
    }
    for id in &ids {
        browser.get(&format!("{HOME}/users/{id}")).await;
    }
    let page = browser.get(START).await;
    for id in ["seen", "created", "deleted"] {
        assert_eq!(panel(&page, id).matches("<li>").count(), 6, "{id}: {}", page.text);
    }
    // The latest first; of the deleted ones those that are purged first.
    assert!(panel(&page, "seen").contains("person 29 "));
    assert!(panel(&page, "created").contains("person 29 "));
    assert!(panel(&page, "deleted").contains("person 0 "));
    assert!(page.text.len() < 60_000, "{} bytes", page.text.len());
    let found = browser.submit(&page, &format!("{HOME}/search"), &[]).await;
    found.assert_has(&["20 in all"]);

    client.purge(&ids[29]).await.unwrap();
    let page = browser.get(START).await;
    assert!(!panel(&page, "seen").contains(&ids[29]), "{}", page.text);
    assert!(!panel(&page, "created").contains(&ids[29]), "{}", page.text);
}

#[tokio::test]
async fn a_resolver_has_the_box_alone_and_sessions_know_their_own_users() {
    let site = GuardedSite::start(&[
        ("boss", "admin", "*"),
        ("vera", "viewer", "*"),
        ("rex", "resolver", "*"),
    ]);
    let mut boss = site.browser("boss").await;
    let all = boss.post(&format!("{HOME}/search"), &[("q", "")]).await;
    let user = all.attribute("href", &format!("{HOME}/users/"));
    boss.get(&user).await;
    let page = boss.get(START).await;
    assert!(panel(&page, "seen").contains(&user), "{}", page.text);
    assert!(!page.path.contains(&user));

    let mut vera = site.browser("vera").await;
    let page = vera.get(START).await;
    assert!(!panel(&page, "seen").contains("<li>"), "{}", page.text);
    page.assert_has(&["<h2 id=\"created\">"]);
    assert!(!page.text.contains("Create a user") && !page.text.contains("/undo\""));

    let mut rex = site.browser("rex").await;
    rex.get(&user).await;
    let page = rex.get(START).await;
    page.assert_has(&["What the box understands", "0 API calls"]);
    for text in ["class=\"panel\"", "/users/", "List all users"] {
        assert!(!page.text.contains(text), "{text}: {}", page.text);
    }
}

#[tokio::test]
async fn single_keys_are_shortcuts_until_they_are_turned_off() {
    let site = Site::start(&[]);
    let mut browser = site.browser().await;
    let on = browser.get(START).await;
    on.assert_has(&["Press <kbd>?</kbd>"]);
    assert!(!on.text.contains("data-keys"));
    let set = [("keys", "off"), ("next", START)];
    let off = browser.post("/console/preferences", &set).await;
    off.assert_has(&["data-keys=\"off\""]);
    assert!(!off.text.contains("Press <kbd>?</kbd>"));
    browser.post("/console/preferences", &[("keys", "other")]).await;
    assert!(browser.get(START).await.text.contains("data-keys=\"off\""));
    browser.post("/console/preferences", &[("keys", "")]).await;
    assert!(!browser.get(START).await.text.contains("data-keys"));
}

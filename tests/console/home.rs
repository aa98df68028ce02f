//! The start page: what goes on, for those who may know it.

use polynym_proto::v1;
use testkit::calls::{Client, handle, user};
use v1::bulk_action::{Action, Disable};

use crate::browser::{Answer, HOME, Site};
use crate::bulk::ended;
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

    client.delete(&ids[28]).await.unwrap();
    client.purge(&ids[29]).await.unwrap();
    let page = browser.get(START).await;
    assert!(!panel(&page, "seen").contains(&ids[29]), "{}", page.text);
    let created = panel(&page, "created");
    assert!(!created.contains(&ids[29]) && !created.contains(&ids[28]), "{created}");
    assert_eq!(created.matches("<li>").count(), 6, "those who are there: {created}");
}

/// What the page says of operations is true: at least the number that it read.
#[tokio::test]
async fn operations_have_true_numbers_and_times() {
    let site = Site::start(&[]);
    let mut client = Client::connect(&site.server.url).await;
    let mut browser = site.browser().await;
    for n in 0..80 {
        let one = user(&format!("p {n}"), Vec::new());
        let message = v1::CreateUserRequest { user: Some(one), ..Default::default() };
        let mut request = tonic::Request::new(message);
        request.metadata_mut().insert("polynym-operation-id", "import-7".parse().unwrap());
        client.registry.create_user(request).await.unwrap();
    }
    browser.get(START).await.assert_has(&["and at least 47 more"]);
    for reason in ["ticket 1", "ticket 2"] {
        let bulk = v1::StartBulkChangeRequest {
            action: Some(v1::BulkAction { action: Some(Action::Disable(Disable {})) }),
            filter: format!("display_name:\"p {}*\"", &reason[7..]),
            ..Default::default()
        };
        let mut request = tonic::Request::new(bulk);
        request.metadata_mut().insert("polynym-reason", reason.parse().unwrap());
        let bulk = client.registry.start_bulk_change(request).await.unwrap().into_inner();
        let path = format!("{HOME}/bulk/{}", bulk.bulk_change.unwrap().bulk_id);
        ended(&mut browser, &path).await;
    }
    let page = browser.get(START).await;
    let [one, two] = ["ticket 1", "ticket 2"].map(|reason| panel(&page, "ended").find(reason));
    assert!(two < one && two.is_some(), "the latest first: {}", panel(&page, "ended"));
    assert_eq!(panel(&page, "ended").matches("<time").count(), 2);
}

#[tokio::test]
async fn a_tenant_that_is_not_there_has_no_pages() {
    let site = Site::start(&[]);
    let mut browser = site.browser().await;
    for tenant in ["NOSUCH", "nosuch", "a_b"] {
        for page in ["", "audit"] {
            let answer = browser.get(&format!("/console/t/{tenant}/{page}")).await;
            assert_eq!(answer.status, 404, "{tenant}/{page}");
            assert!(!answer.text.contains(&format!("/t/{tenant}/duplicates")), "{}", answer.text);
        }
        browser
            .get(&format!("/console/t/{tenant}/"))
            .await
            .assert_has(&["There is no such tenant"]);
    }
}

#[tokio::test]
async fn addresses_that_are_none_have_pages_of_the_console() {
    let site = Site::start(&[]);
    let mut browser = site.browser().await;
    for (path, status) in [
        ("audit/zzz", 404),
        ("search/zzz", 404),
        ("import/zzz", 404),
        ("duplicates/zzz", 404),
        ("search/1/without/zzz", 404),
        ("bulk/new?selection=zzz", 400),
        ("link?search=zzz", 400),
        ("audit/%ff", 404),
    ] {
        let answer = browser.get(&format!("{HOME}/{path}")).await;
        assert_eq!(answer.status, status, "{path}");
        answer.assert_has(&["<h1>", "What to do", "</html>"]);
        assert!(!answer.text.contains("Cannot parse"), "{path}: {}", answer.text);
    }
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

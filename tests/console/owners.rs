//! Who an identifier is, was, and how it was read.

use testkit::calls::{Client, email, handle, user};

use crate::browser::{HOME, Site};

#[tokio::test]
async fn former_owners_have_their_periods() {
    let site = Site::start(&[]);
    let mut client = Client::connect(&site.server.url).await;
    client.hold_nothing().await;
    let identities = vec![handle("joe"), email("joe@example.com")];
    let first = client.create(user("Joe <First>", identities)).await.unwrap().user_id;
    client.unlink(&first, handle("joe")).await.unwrap();
    let mut browser = site.browser().await;
    let search = format!("{HOME}/search");
    let free = browser.post(&search, &[("q", "@JOE")]).await;
    free.assert_has(&["Nobody owns it. It is free.", "Joe &#60;First&#62;</a>"]);
    let second = client.create(user("Joe Second", vec![handle("joe")])).await.unwrap().user_id;
    let page = browser.post(&search, &[("q", "@JOE")]).await;
    page.assert_has(&["<h2 id=\"owners\">Owners</h2>", "<span class=\"mark\">now</span>"]);
    let [now, before] = [&second, &first].map(|id| page.text.rfind(&**id).unwrap());
    assert!(now < before, "the present owner is first");
    page.assert_has(&["How it was read", "<code dir=\"auto\">handle:joe</code>", "lower-case"]);

    let at = "2001-01-01T00:00";
    let early = browser.get(&format!("{}?as_of={at}", page.path)).await;
    early.assert_has(&["2001-01-01 00:00 UTC:", "value=\"2001-01-01T00:00\""]);
    assert_eq!(early.status, 200);
    let future = browser.get(&format!("{}?as_of=2999-01-01T00:00", page.path)).await;
    future.assert_has(&["in the future"]);
    let wrong = browser.get(&format!("{}?as_of=then", page.path)).await;
    assert_eq!(wrong.status, 422);
    wrong.assert_has(&["value=\"then\"", "Owner at: not a time.", "aria-invalid=\"true\""]);
    wrong.assert_has(&["<h2 id=\"owners\">Owners</h2>"]);
    let created = client.get(&second).await.unwrap().create_time.unwrap();
    let then = browser.get(&format!("{}?as_of={created}", page.path)).await;
    then.assert_has(&["role=\"status\"", "Joe Second</a> <span class=\"state active\">"]);
}

#[tokio::test]
async fn a_held_identifier_and_a_purged_owner_are_shown() {
    let site = Site::start(&[]);
    let mut client = Client::connect(&site.server.url).await;
    let identities = vec![handle("joe"), email("joe@example.com")];
    let first = client.create(user("First", identities)).await.unwrap().user_id;
    client.unlink(&first, handle("joe")).await.unwrap();
    let mut browser = site.browser().await;
    let search = format!("{HOME}/search");
    let held = browser.post(&search, &[("q", "@joe")]).await;
    held.assert_has(&["IDENTITY_HELD", "Held for its former owner until", "First</a>"]);
    client.hold_nothing().await;
    client.release(handle("joe")).await.unwrap();
    let second = client.create(user("Second", vec![handle("joe")])).await.unwrap().user_id;
    client.unlink(&second, handle("joe")).await.unwrap();
    client.purge(&first).await.unwrap();
    let purged = browser.post(&search, &[("q", "@joe")]).await;
    purged.assert_has(&["a purged user", "Second</a>"]);
    assert!(!purged.text.contains(&first));
}

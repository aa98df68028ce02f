//! Lists: columns, sizes, pages, and a search as a file.

use testkit::calls::{Client, email, handle, text, user};

use crate::browser::{HOME, Site};
use crate::tokens::GuardedSite;

async fn with_users(count: usize) -> Site {
    let site = Site::start(&[]);
    let mut client = Client::connect(&site.server.url).await;
    for n in 0..count {
        let name = format!("user{n:03}");
        let mut one = user(&name, vec![handle(&name), email(&format!("{name}@example.com"))]);
        one.attributes.insert("team".to_owned(), text(if n % 2 == 0 { "red" } else { "blue" }));
        client.create(one).await.unwrap();
    }
    site
}

#[tokio::test]
async fn columns_and_size_are_remembered() {
    let site = with_users(60).await;
    let mut browser = site.browser().await;
    let list = browser.post(&format!("{HOME}/search"), &[("q", "")]).await;
    list.assert_has(&[">Identities</th>", "Next page"]);
    assert_eq!(list.text.matches("data-row").count(), 25);
    let columns = browser.get(&list.attribute("href", &format!("{}/columns", list.path))).await;
    columns.assert_has(&["value=\"attributes.team\"", "value=\"identities\" checked"]);
    let chosen = [("column", "attributes.team"), ("column", "email"), ("size", "50")];
    let list = browser.submit(&columns, &columns.path.clone(), &chosen).await;
    list.assert_has(&[">team</th>", ">Email addresses</th>", ">red</td>"]);
    // Users are in the order of their ids, which are random: each row has an address.
    assert_eq!(list.text.matches("@example.com").count(), 50);
    assert!(!list.text.contains(">Identities</th>"));
    assert_eq!(list.text.matches("data-row").count(), 50);
    let other = browser.post(&format!("{HOME}/search"), &[("q", "user00")]).await;
    other.assert_has(&[">team</th>"]);
    assert!(list.text.len() < 100_000, "{} bytes", list.text.len());
}

#[tokio::test]
async fn a_search_is_exported_as_it_is_on_the_screen() {
    let site = with_users(60).await;
    let mut client = Client::connect(&site.server.url).await;
    let mut evil = user("=1+1", vec![handle("evil")]);
    evil.attributes.insert("team".to_owned(), text("red"));
    client.create(evil).await.unwrap();
    let mut browser = site.browser().await;
    let search = format!("{HOME}/search");
    let list = browser.post(&search, &[("q", "attributes.team = \"re*\"")]).await;
    let columns = browser.get(&format!("{}/columns", list.path)).await;
    let chosen = [("column", "attributes.team"), ("column", "handle")];
    let list = browser.submit(&columns, &columns.path.clone(), &chosen).await;
    let table = browser.get(&format!("{}/export?format=csv", list.path)).await;
    let disposition = table.response.header("content-disposition");
    assert_eq!(disposition, "attachment; filename=\"users.csv\"");
    let rows: Vec<_> = table.text.trim_start_matches('\u{feff}').lines().collect();
    assert_eq!(rows[0], "user_id,display_name,attributes.team,handle[;]");
    assert_eq!(rows.len(), 32);
    assert!(rows[1..].iter().all(|row| row.contains(",red,")));
    assert!(table.text.contains(",'=1+1,red,evil"), "{}", table.text);

    let lines = browser.get(&format!("{}/export?format=jsonl", list.path)).await;
    let users: Vec<serde_json::Value> =
        lines.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(users.len(), 31);
    let names: Vec<_> = users[0].as_object().unwrap().keys().collect();
    assert_eq!(names, ["attributes", "displayName", "identities", "userId"]);
    assert_eq!(users[0]["identities"].as_array().unwrap().len(), 1, "handles alone");
    for (path, status) in [("export?format=xml", 400), ("export", 400)] {
        assert_eq!(browser.get(&format!("{}/{path}", list.path)).await.status, status);
    }
    let identifier = browser.post(&search, &[("q", "@user001")]).await;
    assert!(!identifier.text.contains("Export as"));
    let none = browser.get(&format!("{}/export?format=csv", identifier.path)).await;
    assert_eq!(none.status, 404);
}

#[tokio::test]
async fn columns_and_files_keep_the_order() {
    let site = with_users(40).await;
    let mut browser = site.browser().await;
    let list = browser.post(&format!("{HOME}/search"), &[("q", "")]).await;
    let list = browser.get(&format!("{}?order=display_name", list.path)).await;
    let link = |start: &str| list.attribute("href", start).replace("&#38;", "&");
    let begin = list.path.split('?').next().unwrap();
    let lines = browser.get(&link(&format!("{begin}/export?format=jsonl"))).await;
    let names: Vec<_> =
        lines.text.lines().map(|line| &line[line.find("user0").unwrap()..][..7]).collect();
    assert_eq!((names.len(), names.is_sorted()), (40, true), "{names:?}");
    let columns = browser.get(&link(&format!("{begin}/columns"))).await;
    let action = columns.attribute("action", begin).replace("&#38;", "&");
    let list = browser.post(&action, &[("column", "state")]).await;
    list.assert_has(&["aria-sort=\"ascending\""]);
    assert!(list.path.ends_with("?order=display_name"), "{}", list.path);
}

#[tokio::test]
async fn long_values_of_any_script_keep_a_page_small() {
    let site = Site::start(&[]);
    let mut client = Client::connect(&site.server.url).await;
    for n in 0..30 {
        let name = format!("<b>\"{}", "ש".repeat(200));
        let mut one = user(&name, vec![handle(&format!("long{n}"))]);
        one.attributes.insert("note".to_owned(), text(&"'<&".repeat(1_300)));
        client.create(one).await.unwrap();
    }
    let mut browser = site.browser().await;
    let list = browser.post(&format!("{HOME}/search"), &[("q", "")]).await;
    let columns = format!("{}/columns", list.path);
    let chosen: [(&str, &str); 2] = [("column", "attributes.note"), ("size", "25")];
    let list = browser.post(&columns, &chosen).await;
    list.assert_has(&["…"]);
    assert!(!list.text.contains("<b>"));
    assert!(list.text.len() < 100_000, "{} bytes", list.text.len());
}

#[tokio::test]
async fn what_a_resolver_may_not_list_is_not_there() {
    let site = GuardedSite::start(&[("ana", "resolver", "*")]);
    let mut browser = site.browser("ana").await;
    let found = browser.post(&format!("{HOME}/search"), &[("q", "@joe")]).await;
    found.assert_has(&["Owned by", "How it was read"]);
    assert!(!found.text.contains("id=\"owners\"") && !found.text.contains("/history"));
    let id = "019e6b86-0000-7000-8000-000000000000";
    for path in [
        format!("{}/columns", found.path),
        format!("{}/export?format=csv", found.path),
        format!("{HOME}/users/{id}/history"),
        format!("{HOME}/audit"),
        format!("{HOME}/operations/x"),
        format!("{HOME}/operations/x/undo"),
        format!("{HOME}/policies/history"),
    ] {
        assert_eq!(browser.get(&path).await.status, 403, "{path}");
    }
}

/// The number above a list does not depend on its order.
#[tokio::test]
async fn an_ordered_list_has_the_number_of_the_unordered_one() {
    let site = Site::start(&[]);
    let mut client = Client::connect(&site.server.url).await;
    for n in 0..640 {
        let (name, team) = if n < 120 { ("a", "blue") } else { ("b", "red") };
        let mut one = user(&format!("{name}{n:03}"), Vec::new());
        one.attributes.insert("team".to_owned(), text(team));
        client.create(one).await.unwrap();
    }
    let mut browser = site.browser().await;
    let filter = "attributes.team = \"red\" AND state = ACTIVE";
    let list = browser.post(&format!("{HOME}/search"), &[("q", filter)]).await;
    list.assert_has(&["1 to 25 of at least 500"]);
    let named = browser.get(&format!("{}?order=display_name", list.path)).await;
    named.assert_has(&["1 to 25 of at least 500"]);
}

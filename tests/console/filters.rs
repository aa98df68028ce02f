//! The filter of a list as chips: each can be removed, and a form adds others.

use polynym_proto::v1;
use testkit::calls::{Client, handle, text, user};

use crate::browser::{Answer, Browser, HOME, Site};

const SEARCH: &str = "/console/t/default/search";

/// A value with every character that filters escape, and what people paste.
const ODD: &str = r#"a \"b\": 'c' * AND (d) ü 山 https://x.com/joe <joe@example.com>"#;

async fn with_users() -> (Site, Browser) {
    let site = Site::start(&[]);
    let mut client = Client::connect(&site.server.url).await;
    for (name, team) in [("ann", "red"), ("bob", "blue"), ("cleo", ODD), ("dora", "24103")] {
        let mut one = user(name, vec![handle(name)]);
        one.attributes.insert("team".to_owned(), text(team));
        one.attributes.insert("Favorite \"Player\"".to_owned(), text(team));
        client.create(one).await.unwrap();
    }
    let level = v1::AttributeDefinition {
        name: "level".to_owned(),
        r#type: v1::AttributeType::Int.into(),
        ..Default::default()
    };
    let attribute_definitions = vec![level];
    client.govern(v1::Policies { attribute_definitions, ..Default::default() }).await.unwrap();
    let browser = site.browser().await;
    (site, browser)
}

/// The names of the users in a list.
fn names(page: &Answer) -> Vec<&str> {
    let rows = page.text.split("<a data-row").skip(1);
    rows.map(|row| row.split(['<', '>']).nth(1).unwrap()).collect()
}

/// The addresses that remove a chip.
fn chips(page: &Answer) -> Vec<String> {
    let links = page.text.split("<a class=\"chip\" href=\"").skip(1);
    links.map(|link| link.split('"').next().unwrap().replace("&#38;", "&")).collect()
}

async fn add(browser: &mut Browser, page: &Answer, fields: &[(&str, &str)]) -> Answer {
    let action =
        page.attribute("action", &format!("{}/filter", page.path.split('?').next().unwrap()));
    browser.post(&action.replace("&#38;", "&"), fields).await
}

#[tokio::test]
async fn conditions_are_added_and_removed() {
    let (_site, mut browser) = with_users().await;
    let all = browser.post(SEARCH, &[("q", "")]).await;
    all.assert_has(&["<option value=\"team\">", "<option value=\"level\">whole number</option>"]);
    assert!(chips(&all).is_empty());

    let fields = [("attribute", "team"), ("operator", "="), ("value", "red")];
    let red = add(&mut browser, &all, &fields).await;
    red.assert_has(&["attributes.team = &#34;red&#34;"]);
    assert_eq!((names(&red), chips(&red).len()), (vec!["ann"], 1));
    assert!(!red.path.contains("red"), "{}", red.path);

    let state = add(&mut browser, &red, &[("state", "deleted")]).await;
    assert_eq!((names(&state).len(), chips(&state).len()), (0, 2));
    let state = add(&mut browser, &state, &[("state", "active")]).await;
    assert_eq!((names(&state), chips(&state).len()), (vec!["ann"], 2), "a state replaces another");
    let active = browser.get(&chips(&state)[0]).await;
    assert_eq!((names(&active).len(), chips(&active).len()), (4, 1));
    let all = browser.get(&chips(&active)[0]).await;
    all.assert_has(&["<h1>All users</h1>"]);
    assert_eq!((names(&all).len(), chips(&all).len()), (4, 0));

    let days = [("created_from", "2020-01-01"), ("created_to", "2020-01-02")];
    let none = add(&mut browser, &all, &days).await;
    none.assert_has(&["create_time &#62;= 2020-01-01", "create_time &#60;= 2020-01-02"]);
    assert_eq!((names(&none).len(), chips(&none).len()), (0, 2));
    let since = browser.get(&chips(&none)[1]).await;
    assert_eq!((names(&since).len(), chips(&since).len()), (4, 1));
    let gone = browser.get(&chips(&since)[0].replace("/without/0", "/without/7")).await;
    assert_eq!(gone.status, 404);
}

#[tokio::test]
async fn values_are_found_whatever_their_characters() {
    let (_site, mut browser) = with_users().await;
    for (attribute, operator, value, expected) in [
        ("team", "=", ODD, &["cleo"][..]),
        ("Favorite \"Player\"", "=", ODD, &["cleo"]),
        ("team", "start", "a \\\"b\\\": 'c' *", &["cleo"]),
        ("team", "=", "24103", &["dora"]),
        ("team", "=", "a*", &[]),
        ("team", "=", "x\" OR state = \"ACTIVE", &[]),
        ("nobody's", "=", "https://x.com/joe", &[]),
        ("team", "unset", "", &[]),
    ] {
        let all = browser.post(SEARCH, &[("q", "")]).await;
        let fields = [("attribute", attribute), ("operator", operator), ("value", value)];
        let page = add(&mut browser, &all, &fields).await;
        assert_eq!((page.status, names(&page)), (200, expected.to_vec()), "{value}");
        assert_eq!(chips(&page).len(), 1, "{value}: {}", page.text);
        // What the box shows finds the same.
        let box_text = page.attribute("value", "").replace("&#34;", "\"");
        let typed = box_text.replace("&#39;", "'").replace("&#60;", "<").replace("&#62;", ">");
        let typed = browser.post(SEARCH, &[("q", &typed.replace("&#38;", "&"))]).await;
        assert_eq!(names(&typed), expected, "{value}");
    }
    let all = browser.post(SEARCH, &[("q", "")]).await;
    let wrong = add(&mut browser, &all, &[("attribute", "level"), ("value", "three")]).await;
    wrong.assert_has(&["whole number", "<details class=\"menu\" open>", "value=\"three\""]);
    wrong.assert_has(&["value=\"level\"", "4 in all", "aria-errormessage=\"f-problem\""]);
    assert_eq!(wrong.status, 422);
    // A number is compared with numbers, and a text in quotes with texts.
    for (value, expected) in [("50228", &[][..]), ("\"50228\"", &["dora"])] {
        let fields = [("attribute", "team"), ("operator", "<"), ("value", value)];
        assert_eq!(names(&add(&mut browser, &all, &fields).await), expected, "{value}");
    }
}

#[tokio::test]
async fn words_of_names_are_narrowed_and_the_order_stays() {
    let (_site, mut browser) = with_users().await;
    let words = browser.post(SEARCH, &[("q", "o")]).await;
    let narrowed = add(&mut browser, &words, &[("state", "active")]).await;
    narrowed.assert_has(&["display_name: &#34;o*&#34;", "state = ACTIVE"]);
    let all = browser.post(SEARCH, &[("q", "")]).await;
    let ordered = browser.get(&format!("{}?order=display_name", all.path)).await;
    let active = add(&mut browser, &ordered, &[("state", "active")]).await;
    assert!(active.path.ends_with("?order=display_name"), "{}", active.path);
    assert_eq!(names(&active), ["ann", "bob", "cleo", "dora"]);
    let back = browser.get(&chips(&active)[0]).await;
    assert!(back.path.ends_with("?order=display_name"), "{}", back.path);
}

#[tokio::test]
async fn attributes_with_long_names_keep_a_page_small() {
    let site = Site::start(&[]);
    let mut client = Client::connect(&site.server.url).await;
    for n in 0..6 {
        let mut one = user("ann", vec![handle(&format!("ann{n}"))]);
        for a in 0..30 {
            one.attributes.insert(format!("{n}.{a} {}", "'\"<".repeat(70)), text("x"));
        }
        client.create(one).await.unwrap();
    }
    let mut browser = site.browser().await;
    let all = browser.post(&format!("{HOME}/search"), &[("q", "")]).await;
    all.assert_has(&["+ Filter"]);
    assert!(all.text.len() < 60_000, "{} bytes", all.text.len());
    let conditions = (0..90).map(|n| format!("attributes.a{n} = \"<&'{n}\""));
    let long = conditions.collect::<Vec<_>>().join(" ");
    let long = browser.post(&format!("{HOME}/search"), &[("q", &long)]).await;
    long.assert_has(&["and 70 more"]);
    assert!(long.text.len() < 60_000, "{} bytes", long.text.len());
}

#[tokio::test]
async fn searches_are_saved_for_their_caller_and_tenant() {
    let (_site, mut browser) = with_users().await;
    let odd =
        format!("display_name:* AND state:ACTIVE AND NOT attributes.team = \"{}\"", "ü".repeat(20));
    let found = browser.post(SEARCH, &[("q", &odd)]).await;
    let ordered = browser.get(&format!("{}?order=display_name", found.path)).await;
    let save = |page: &Answer| {
        let start = format!("{}/save", page.path.split('?').next().unwrap());
        page.attribute("action", &start).replace("&#38;", "&")
    };
    let saved = browser.post(&save(&ordered), &[("name", "Everybody <b>")]).await;
    saved.assert_has(&["Saved as <strong dir=\"auto\">Everybody &#60;b&#62;</strong>"]);
    assert_eq!(saved.path, ordered.path);
    let renamed = browser.post(&save(&saved), &[("name", "All")]).await;
    renamed.assert_has(&["Saved as <strong dir=\"auto\">All</strong>"]);

    browser.post("/console/sign-out", &[]).await;
    let home = browser.get(&format!("{HOME}/")).await;
    home.assert_has(&["Saved searches", ">All</a>", "End of a phone number"]);
    assert!(!home.text.contains("Everybody"));
    let opened = browser.get(&home.attribute("href", &format!("{HOME}/saved/"))).await;
    assert!(opened.path.ends_with("?order=display_name"), "{}", opened.path);
    assert_eq!(names(&opened), ["ann", "bob", "cleo", "dora"]);

    let remove = home.attribute("action", &format!("{HOME}/saved/"));
    assert!(!browser.post(&remove, &[]).await.text.contains("Saved searches"));
    assert_eq!(browser.get(&remove.replace("/remove", "")).await.status, 404);
}

#[tokio::test]
async fn too_many_saved_searches_are_refused() {
    let (_site, mut browser) = with_users().await;
    let mut refused = 0;
    for n in 0..100 {
        let found = browser.post(SEARCH, &[("q", &format!("attributes.team = {n}"))]).await;
        let saved =
            browser.post(&format!("{}/save", found.path), &[("name", &n.to_string())]).await;
        if n >= 20 {
            saved.assert_has(&["You have 20 saved searches", "Remove one"]);
            assert_eq!(saved.status, 422);
            refused += 1;
        }
    }
    assert_eq!(refused, 80);
    assert!(browser.cookie("polynym_searches").unwrap().len() <= 3_600);
    let home = browser.get(&format!("{HOME}/")).await;
    assert_eq!(home.text.matches("/remove\"").count(), 20);
    assert!(home.text.len() < 60_000);
    browser.post("/console/sign-out", &[]).await;
    let wrong = browser.post(SEARCH, &[("q", "")]).await;
    let wrong = browser.post(&format!("{}/save", wrong.path), &[("name", " ")]).await;
    wrong.assert_has(&["Write a name of 1 to 60 characters."]);
}

#[tokio::test]
async fn values_of_a_chosen_attribute_are_suggested() {
    let site = Site::start(&[]);
    let mut client = Client::connect(&site.server.url).await;
    for n in 0..250 {
        let mut one = user("ann", Vec::new());
        let team = if n % 10 == 0 { format!("{n} <b>") } else { "red".to_owned() };
        one.attributes.insert("team".to_owned(), text(&team));
        if n % 50 == 0 {
            one.attributes.insert("a \"b\"".to_owned(), text(ODD));
        }
        client.create(one).await.unwrap();
    }
    let mut browser = site.browser().await;
    let all = browser.post(SEARCH, &[("q", "")]).await;
    all.assert_has(&["list=\"values\"", "<datalist id=\"values\"></datalist>"]);
    let values = all.attribute("data-hx-post", &format!("{}/values", all.path));
    let of = |name: &'static str| [("attribute", name), ("operator", "="), ("value", "x")];
    let team = browser.post(&values, &of("team")).await;
    team.assert_has(&["<option value=\"red\">", " &#60;b&#62;\"></option>", "first 200 users"]);
    assert!(team.text.starts_with("<datalist id=\"values\"><option value=\"red\">"));
    assert!(team.text.matches("<option").count() <= 30 && team.text.len() < 4_000);
    let odd = browser.post(&values, &of("a \"b\"")).await;
    odd.assert_has(&["first 5 users", "<option value=\"a \\&#34;b\\&#34;: &#39;c&#39; * AND"]);
    for nothing in ["", "nobody's", "x:* OR state"] {
        let none = browser.post(&values, &[("attribute", nothing)]).await;
        assert_eq!((none.status, none.text.contains("<option")), (200, false), "{nothing}");
    }

    let rare = [("attribute", "team"), ("operator", "="), ("value", "10 <b>")];
    let red = add(&mut browser, &all, &rare).await;
    let values = red.attribute("data-hx-post", &format!("{}/values", red.path));
    let team = browser.post(&values, &of("team")).await;
    team.assert_has(&["the only user of this list"]);
    assert_eq!(team.text.matches("<option").count(), 1, "those of the list alone");
    assert_eq!(browser.post(&format!("{SEARCH}/9999/values"), &of("team")).await.status, 404);
}

/// The longest columns and searches that a browser keeps are no header that the server refuses.
#[tokio::test]
async fn what_a_browser_keeps_fits_into_a_request() {
    let (_site, mut browser) = with_users().await;
    let found = browser.post(SEARCH, &[("q", "")]).await;
    let columns = (0..8).map(|n| format!("attributes.{n}{}", "ü".repeat(58)));
    let columns: Vec<_> = columns.collect();
    let columns: Vec<_> = columns.iter().map(|name| ("column", name.as_str())).collect();
    browser.post(&format!("{}/columns", found.path), &columns).await;
    let mut statuses = std::collections::BTreeSet::new();
    for n in 0..60 {
        let filter = format!("attributes.a{n} = \"{}\"", "山".repeat(n * 5));
        let found = browser.post(SEARCH, &[("q", &filter)]).await;
        assert_eq!(found.status, 200, "{filter}");
        let name = "🙂".repeat(n + 1);
        let saved = browser.post(&format!("{}/save", found.path), &[("name", &name)]).await;
        statuses.insert(saved.status);
        let kept = browser.cookie("polynym_searches").map_or(0, str::len);
        assert!(kept <= 3_600, "{kept} bytes");
    }
    assert_eq!(Vec::from_iter(statuses), [200, 422]);
    let home = browser.get(&format!("{HOME}/")).await;
    home.assert_has(&["Saved searches"]);
}

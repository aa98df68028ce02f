//! The search box.

use polynym_proto::v1;
use testkit::calls::{Client, email, handle, phone, text, user};

use crate::browser::{Answer, Site};
use crate::tokens::GuardedSite;

const SEARCH: &str = "/console/t/default/search";

#[tokio::test]
async fn a_paste_is_read_and_finds_its_user() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    for (text, reading) in [
        ("(415) 555-2671", "phone, United States, +14155552671"),
        ("Joe.Smith@Example.com", "email, joe.smith@example.com"),
        ("@joe", "handle, joe"),
        ("tel:+1-415-555-2671", "phone, +14155552671"),
        ("\u{202a}(+1) 415 555 2671\u{202c}", "phone, +14155552671"),
        ("\"Smith, Joe\" <Joe.Smith@Example.com>", "email, joe.smith@example.com"),
        ("mailto:joe.smith@example.com", "email, joe.smith@example.com"),
        ("github/583231", "social, github/583231"),
    ] {
        let answer = browser.post(SEARCH, &[("q", text)]).await;
        answer.assert_has(&[reading, ">Joe Smith</a>"]);
        let id = answer.path.strip_prefix(&format!("{SEARCH}/")).unwrap();
        assert!(id.parse::<u64>().is_ok(), "nothing of the text is in {}", answer.path);
    }
    let user = browser.post(SEARCH, &[("q", "joe smi")]).await;
    let user = browser.get(&user.attribute("href", "/console/t/default/users/")).await;
    user.assert_has(&["<h1 dir=\"auto\">Joe Smith", "+14155552671", "The same by command"]);
}

#[tokio::test]
async fn a_part_of_a_name_finds_its_user() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    for (text, name) in [
        ("민준", "김민준"),
        ("田中", "花子 田中"),
        ("小明", "王小明"),
        ("یوسف", "يوسف حداد"),
        ("Ni-Bhriain", "Siobhán Ní Bhriain"),
    ] {
        browser.post(SEARCH, &[("q", text)]).await.assert_has(&[&format!(">{name}</a>")]);
    }
}

#[tokio::test]
async fn a_filter_finds_users_page_by_page() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let first = browser.post(SEARCH, &[("q", "")]).await;
    first.assert_has(&["<h1>All users</h1>", "Next page"]);
    first.assert_has(&["1 to 25 of "]);
    let second = browser.get(&first.next_page()).await;
    second.assert_has(&["<h1>All users</h1>", "26 to ", "Previous page", "First page"]);
    let user = first.attribute("href", "/console/t/default/users/");
    assert!(!second.text.contains(&user), "a user is on both pages");
    let named = browser.get(&first.attribute("href", &format!("{}?order=", first.path))).await;
    named.assert_has(&["aria-sort=\"ascending\"", "1 to 25 of "]);
    let names = |page: &Answer| {
        let rows = page.text.split("<a data-row").skip(1);
        let name = |row: &str| row.split(['<', '>']).nth(1).unwrap().to_owned();
        rows.map(name).collect::<Vec<_>>()
    };
    let all = [names(&named), names(&browser.get(&named.next_page()).await)].concat();
    assert!(all.len() > 25 && all.is_sorted(), "{all:?}");
    let none = browser.post(SEARCH, &[("q", "attributes.nothing = 1")]).await;
    none.assert_has(&["No user matches: no user has attributes.nothing"]);
    let wrong = browser.post(SEARCH, &[("q", "state = AWAY")]).await;
    wrong.assert_has(&["FILTER_INVALID", "Expected one of", "value=\"state = AWAY\""]);
    wrong.assert_has(&["aria-errormessage=\"problem\"", "+ Filter"]);
    assert_eq!(wrong.status, 422);
}

#[tokio::test]
async fn an_address_of_another_session_finds_nothing() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let former = browser.post(SEARCH, &[("q", "state = DISABLED")]).await.path;
    browser.post("/console/sign-out", &[]).await;
    let all = browser.post(SEARCH, &[("q", "")]).await.path;
    assert_ne!(all, former);
    for page in [&former, &format!("{former}/export?format=csv")] {
        let gone = browser.get(page).await;
        assert_eq!(gone.status, 404, "{page}");
        gone.assert_has(&["Search again"]);
    }
}

#[tokio::test]
async fn people_are_found_by_what_callers_say_with_the_reasons() {
    let site = Site::start(&[]);
    let mut client = Client::connect(&site.server.url).await;
    let anna = vec![email("anna@example.at"), phone("01 5120000", "AT")];
    let anna = client.create(user("Anna Müller", anna)).await.unwrap().user_id;
    let joe = client.create(user("Joe", vec![handle("joe"), handle("jo")])).await.unwrap().user_id;
    client.unlink(&joe, handle("jo")).await.unwrap();
    let phone_regions = vec!["AT".to_owned()];
    client.govern(v1::Policies { phone_regions, ..Default::default() }).await.unwrap();

    let mut browser = site.browser().await;
    for (text, reason) in [
        ("01 5120000", "phone +4315120000 in AT"),
        ("Mueller", "name with muller"),
        ("anna@exam", "email starting with anna@exam"),
        ("mülelr", "name similar to mulelr"),
    ] {
        let found = browser.post(SEARCH, &[("q", text)]).await;
        found.assert_has(&[">Anna Müller</a>", "Found by", reason]);
    }
    let similar = browser.post(SEARCH, &[("q", "mülelr")]).await;
    similar.assert_has(&["Did you mean", "value=\"muller\""]);
    let both = browser.post(SEARCH, &[("q", "anna@example.at, @joe; nobody@example.com")]).await;
    both.assert_has(&[">Anna Müller</a>", ">Joe</a>", ">nobody@example.com</li>"]);
    let held = browser.post(SEARCH, &[("q", "@jo")]).await;
    held.assert_has(&["Given up by", ">Joe</a>", "Held for its former owner until"]);
    client.delete(&anna).await.unwrap();
    let deleted = browser.post(SEARCH, &[("q", "anna@example.at")]).await;
    deleted.assert_has(&["Owned by", "Anna Müller", "<span class=\"state deleted\">", "<time"]);
    browser.post(SEARCH, &[("q", "xyzzy")]).await.assert_has(&["No user found", "handle xyzzy"]);
    let words = browser.post(SEARCH, &[("q", "joe")]).await;
    words.assert_has(&["display_name: &#34;joe*&#34;", "Search names by a filter"]);
}

/// The names of the users in a list.
fn names(page: &Answer) -> Vec<String> {
    let list = page.text.split("<h2 id=\"owners\">").next().unwrap();
    let rows = list.split("<th scope=\"row\"><a data-row").skip(1);
    rows.map(|row| row.split(['<', '>']).nth(1).unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_list_of_identifiers_is_read_as_a_whole() {
    let site = Site::start(&[]);
    let mut client = Client::connect(&site.server.url).await;
    for n in 0..60 {
        let own = vec![email(&format!("p{n}@example.com"))];
        client.create(user(&format!("p{n}"), own)).await.unwrap();
    }
    let mut browser = site.browser().await;
    let known: Vec<_> = (0..60).map(|n| format!("p{n}@example.com")).collect();
    let typed = format!("{}, @nobody; x<y>@example.com", known.join(", "));
    let words = browser.post(SEARCH, &[("q", &typed)]).await;
    assert!(!words.text.contains("identifiers were read"), "one of them is none");
    let typed = format!("{}, @nobody; none@example.com", known.join(", "));
    let found = browser.post(SEARCH, &[("q", &typed)]).await;
    found.assert_has(&["62 identifiers were read.", "Found nobody: 2", "60 in all"]);
    found.assert_has(&["<li dir=\"auto\">@nobody</li>", "<li dir=\"auto\">none@example.com</li>"]);
    assert_eq!(names(&found).len(), 60);
    let last = format!("{} p59@example.com", "@x ".repeat(8));
    assert_eq!(names(&browser.post(SEARCH, &[("q", &last)]).await), ["p59"]);
    let named = "Ann <p1@example.com>; Joe <p2@example.com>";
    let named = browser.post(SEARCH, &[("q", named)]).await;
    named.assert_has(&["2 identifiers were read."]);
    assert_eq!(names(&named), ["p1", "p2"]);
    let many: Vec<_> = (0..130).map(|n| format!("p{n}@example.com")).collect();
    let many = browser.post(SEARCH, &[("q", &many.join(" "))]).await;
    many.assert_has(&["The first 100 of 130 identifiers were read", "Found nobody: 40"]);
}

#[tokio::test]
async fn a_name_in_the_spelling_that_was_typed_comes_first() {
    let site = Site::start(&[]);
    let mut client = Client::connect(&site.server.url).await;
    for n in 0..30 {
        client.create(user(&format!("Anna{n} Mueller"), Vec::new())).await.unwrap();
    }
    client.create(user("Zoe Müller", Vec::new())).await.unwrap();
    client.create(user("Max Müllerschön", Vec::new())).await.unwrap();
    let mut browser = site.browser().await;
    let found = browser.post(SEARCH, &[("q", "Müller")]).await;
    assert_eq!(names(&found)[0], "Zoe Müller");
    assert!(names(&found)[1].ends_with("Mueller"));
    let found = browser.post(SEARCH, &[("q", "Mueller")]).await;
    assert!(names(&found).iter().all(|name| name.ends_with("Mueller")));
    // Each word may go on.
    let begun = browser.post(SEARCH, &[("q", "zo müll")]).await;
    begun.assert_has(&["name similar to zo mull"]);
    assert_eq!(names(&begun), ["Zoe Müller"]);
}

#[tokio::test]
async fn an_owner_comes_before_others_of_the_name() {
    let site = Site::start(&[]);
    let mut client = Client::connect(&site.server.url).await;
    for n in 0..3 {
        let own = vec![email(&format!("joe{n}@example.com"))];
        client.create(user("Joe Smith", own)).await.unwrap();
    }
    let mut browser = site.browser().await;
    let found = browser.post(SEARCH, &[("q", "Joe Smith <joe2@example.com>")]).await;
    found.assert_has(&["Owned by", "Others whom the text finds"]);
    let rows: Vec<_> = found.text.split("<tr").skip(2).collect();
    assert!(rows[0].contains("joe2@example.com") && rows[1].contains("Others whom"), "{rows:?}");
    assert_eq!(names(&found).len(), 3);
    let alone = browser.post(SEARCH, &[("q", "joe1@example.com")]).await;
    assert!(!alone.text.contains("Others whom") && names(&alone).len() == 1);
}

#[tokio::test]
async fn numbers_above_lists_are_true() {
    let site = Site::start(&[]);
    let mut client = Client::connect(&site.server.url).await;
    for n in 0..40 {
        client.create(user(&format!("Ann{n} Smith"), Vec::new())).await.unwrap();
    }
    let mut browser = site.browser().await;
    let similar = browser.post(SEARCH, &[("q", "Smtih")]).await;
    similar.assert_has(&["the first 25", "Did you mean"]);
    assert!(!similar.text.contains("in all"));
    browser.post(SEARCH, &[("q", "Ann7 Smtih")]).await.assert_has(&["1 in all"]);
}

#[tokio::test]
async fn a_number_is_found_behind_what_it_is_called() {
    let site = Site::start(&[]);
    let mut client = Client::connect(&site.server.url).await;
    let mut one = user("Ann", Vec::new());
    one.attributes.insert("kundennr".to_owned(), text("K-20002"));
    client.create(one).await.unwrap();
    let mut browser = site.browser().await;
    let hint = "finds users once the tenant says so";
    browser.post(SEARCH, &[("q", "K-20002")]).await.assert_has(&[hint]);
    let definition =
        v1::AttributeDefinition { name: "kundennr".to_owned(), find: true, ..Default::default() };
    let attribute_definitions = vec![definition];
    client.govern(v1::Policies { attribute_definitions, ..Default::default() }).await.unwrap();
    for typed in ["K-20002", "Kundennummer K-20002", "Kd-Nr.: k-20002", "#K-20002"] {
        let found = browser.post(SEARCH, &[("q", typed)]).await;
        found.assert_has(&["kundennr", "<summary>How it was read</summary>"]);
        assert_eq!(names(&found), ["Ann"], "{typed}");
    }
    let none = browser.post(SEARCH, &[("q", "K-20009")]).await;
    none.assert_has(&["No user found."]);
    assert!(!none.text.contains(hint), "the tenant says so");
    assert!(!none.text.contains("<strong dir=\"auto\">"), "no reading in bold");
}

#[tokio::test]
async fn a_resolver_is_told_kindly_and_keeps_the_text() {
    let site = GuardedSite::start(&[("rex", "resolver", "*")]);
    let mut rex = site.browser("rex").await;
    for typed in ["Joe Smith", "state = ACTIVE"] {
        let refused = rex.post(SEARCH, &[("q", typed)]).await;
        refused.assert_has(&["whole identifier", &format!("value=\"{typed}\"")]);
        assert_eq!(refused.status, 403, "{typed}");
    }
}

//! The search box.

use polynym_proto::v1;
use testkit::calls::{Client, email, handle, phone, user};

use crate::browser::{Answer, Site};

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
    first.assert_has(&["all users", "Next page"]);
    first.assert_has(&["1 to 25 of "]);
    let second = browser.get(&first.next_page()).await;
    second.assert_has(&["all users", "26 to ", "Previous page", "First page"]);
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
    wrong.assert_has(&["FILTER_INVALID", "Expected one of"]);
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
    both.assert_has(&[">Anna Müller</a>", ">Joe</a>", "email nobody@example.com"]);
    let held = browser.post(SEARCH, &[("q", "@jo")]).await;
    held.assert_has(&["Given up by", ">Joe</a>", "Held for its former owner until"]);
    client.delete(&anna).await.unwrap();
    let deleted = browser.post(SEARCH, &[("q", "anna@example.at")]).await;
    deleted.assert_has(&["Owned by", "Anna Müller", "<span class=\"state deleted\">", "<time"]);
    browser.post(SEARCH, &[("q", "xyzzy")]).await.assert_has(&["No user found", "handle xyzzy"]);
    let words = browser.post(SEARCH, &[("q", "joe")]).await;
    words.assert_has(&["display_name: &#34;joe*&#34;", "Search names by a filter"]);
}

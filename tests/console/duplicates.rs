//! Searching for duplicates.

use testkit::calls::{Client, email, handle, user};

use crate::browser::Site;
use crate::tokens::GuardedSite;

const DUPLICATES: &str = "/console/t/default/duplicates";

#[tokio::test]
async fn pairs_are_found_with_reasons_and_lead_to_their_merge() {
    let site = Site::start(&[]);
    let mut client = Client::connect(&site.server.url).await;
    for n in 0..8 {
        let address = format!("joe+{n}@example.com");
        client.create(user(&format!("Joe <{n}>"), vec![email(&address)])).await.unwrap();
    }
    let mut browser = site.browser().await;
    let home = browser.get(DUPLICATES).await;
    home.assert_has(&["Minimum score", "polynym user duplicates --min-score 50"]);
    let found = browser.submit(&home, DUPLICATES, &[("min_score", "30")]).await;
    found.assert_has(&["28 pairs among 8 users", "Both addresses lead to one mailbox"]);
    found.assert_has(&["<bdi>Joe &#60;", "joe+1@example.com", "8 users read", "</html>"]);
    let second = browser.get(&found.next_page()).await;
    let pairs = ["<ol class=\"pairs\" start=\"26\">", "28 pairs among 8 users", "26 to 28 of 28"];
    second.assert_has(&pairs);
    assert!(!second.text.contains("users read"), "the pairs are kept, not searched again");

    let preview = browser.get(&second.attribute("href", "/console/t/default/users/")).await;
    preview.assert_has(&["Merge two users", "Side by side"]);
    browser.get(DUPLICATES).await.assert_has(&["Your last search", "what it found"]);
    let mut stranger = site.browser().await;
    assert_eq!(stranger.get(&found.path).await.status, 404, "another session has other searches");

    let none = browser.submit(&home, DUPLICATES, &[("min_score", "100")]).await;
    none.assert_has(&["No duplicates among 8 users"]);
    assert_eq!(browser.get(&found.path).await.status, 404, "a session keeps its last search");
}

#[tokio::test]
async fn users_of_one_name_are_a_weak_pair_and_told_apart() {
    let site = Site::start(&[]);
    let mut client = Client::connect(&site.server.url).await;
    for n in 1..=2 {
        let address = email(&format!("petra{n}@zw.example"));
        client.create(user("Petra Zwilling", vec![address])).await.unwrap();
    }
    for (name, own) in [("Jo", "jwolf555"), ("Jo", "jwolf1908")] {
        client.create(user(name, vec![handle(own)])).await.unwrap();
    }
    let mut browser = site.browser().await;
    let home = browser.get(DUPLICATES).await;
    let none = browser.submit(&home, DUPLICATES, &[("min_score", "50")]).await;
    none.assert_has(&["No duplicates among 4 users", "A lower minimum score"]);
    let weak = browser.submit(&home, DUPLICATES, &[("min_score", "1")]).await;
    weak.assert_has(&["1 pair among 4 users", "score 30", "They have the same name"]);
    weak.assert_has(&["<bdi>petra1@zw.example</bdi>", "<bdi>petra2@zw.example</bdi>"]);
    browser.get(&weak.path).await.assert_has(&["<bdi>petra1@zw.example</bdi>"]);

    let site = Site::start(&[]);
    let mut browser = site.browser().await;
    let home = browser.get(DUPLICATES).await;
    let none = browser.submit(&home, DUPLICATES, &[("min_score", "1")]).await;
    none.assert_has(&["No duplicates among 0 users."]);
    assert!(!none.text.contains("A lower minimum"), "it is the lowest");
}

#[tokio::test]
async fn a_wrong_score_is_explained() {
    let site = Site::start(&[]);
    let mut browser = site.browser().await;
    let home = browser.get(DUPLICATES).await;
    for score in ["0", "101", "many"] {
        let refused = browser.submit(&home, DUPLICATES, &[("min_score", score)]).await;
        assert_eq!(refused.status, 422, "{score}");
        refused.assert_has(&["from 1 to 100", &format!("value=\"{score}\"")]);
    }
}

#[tokio::test]
async fn a_registrar_can_neither_open_nor_begin_a_search() {
    let site = GuardedSite::start(&[("ana", "registrar", "*")]);
    let mut browser = site.browser("ana").await;
    browser.get(DUPLICATES).await.assert_has(&["This page needs the role admin"]);
    assert_eq!(browser.post(DUPLICATES, &[("min_score", "50")]).await.status, 403);
    assert_eq!(browser.get(&format!("{DUPLICATES}/1")).await.status, 403);
}

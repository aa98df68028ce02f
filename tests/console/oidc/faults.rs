//! Providers that are gone, slow or broken, and answers that come back wrong.

use std::time::{Duration, Instant};

use serde_json::json;

use super::OidcSite;
use super::provider::{Behaviour, Mood};
use crate::browser::{Answer, HOME};

const METADATA: &str = "/.well-known/openid-configuration";

/// Changes what a provider does.
type Change = Box<dyn Fn(&mut Behaviour)>;

/// Fails unless a page says so, with a way back.
fn assert_refused(page: &Answer, status: u16, text: &str) {
    page.assert_has(&["<h1>You are not signed in</h1>", text, ">Back to signing in</a>"]);
    assert_eq!(page.status, status, "{}", page.text);
}

#[tokio::test]
async fn a_provider_that_says_nothing_usable_of_itself_has_a_page() {
    let moods = |path, mood| move |behaviour: &mut Behaviour| behaviour.mood = Some((path, mood));
    let cases: [(Change, u16, &str); 9] = [
        (Box::new(moods(METADATA, Mood::Silent)), 504, "Example SSO does not answer."),
        (Box::new(moods("/keys", Mood::Silent)), 504, "Example SSO does not answer."),
        (Box::new(moods(METADATA, Mood::Huge)), 502, "answered something that does not count"),
        (Box::new(moods("/keys", Mood::Huge)), 502, "answered something that does not count"),
        (Box::new(moods(METADATA, Mood::Broken)), 502, "Example SSO cannot be reached."),
        (Box::new(moods(METADATA, Mood::Redirecting)), 502, "Example SSO cannot be reached."),
        (Box::new(moods("/keys", Mood::Garbled)), 502, "answered something that does not count"),
        (
            Box::new(|behaviour| behaviour.metadata = json!({ "issuer": "https://sso.example" })),
            502,
            "answered something that does not count",
        ),
        (
            Box::new(|behaviour| {
                behaviour.metadata = json!({ "token_endpoint": "http://sso.example/token" });
            }),
            502,
            "answered something that does not count",
        ),
    ];
    for (change, status, text) in cases {
        let site = OidcSite::start().await;
        site.provider.change(change);
        let mut browser = site.browser().await;
        let began = Instant::now();
        let page = site.ask(&mut browser, &format!("{HOME}/audit")).await;
        assert_refused(&page, status, text);
        assert!(began.elapsed() < Duration::from_secs(30), "{text}");
        page.assert_has(&["/console/sign-in?next=%2Fconsole%2Ft%2Fdefault%2Faudit"]);
        // Until some seconds are over, it is not asked again.
        let before = site.provider.count(METADATA);
        assert_eq!(site.ask(&mut browser, &format!("{HOME}/audit")).await.status, status);
        assert_eq!(site.provider.count(METADATA), before);
    }
}

#[tokio::test]
async fn a_provider_that_fails_at_the_code_has_a_page() {
    let cases = [
        (Mood::Silent, 504, "Example SSO does not answer."),
        (Mood::Huge, 502, "answered something that does not count"),
        (Mood::Broken, 502, "answered something that does not count"),
        (Mood::Redirecting, 502, "answered something that does not count"),
        (Mood::Garbled, 502, "answered something that does not count"),
    ];
    let site = OidcSite::start().await;
    for (mood, status, text) in cases {
        println!("{mood:?}");
        site.provider.change(|behaviour| behaviour.mood = Some(("/token", mood)));
        let mut browser = site.browser().await;
        assert_refused(&site.sign_in(&mut browser, &format!("{HOME}/")).await, status, text);
    }
    site.provider.change(|behaviour| behaviour.mood = None);
    let mut browser = site.browser().await;
    let address = site.begin(&mut browser, &format!("{HOME}/")).await;
    let back = site.at_provider(&address).await;
    site.edit("a secret: of the server", "another secret");
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_refused(&browser.get(&back).await, 502, "Example SSO does not accept this server.");
}

#[tokio::test]
async fn a_provider_that_is_gone_has_a_page_and_hinders_no_token() {
    let site = OidcSite::start().await;
    site.provider.stop();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let mut browser = site.browser().await;
    let page = site.ask(&mut browser, &format!("{HOME}/audit")).await;
    assert_refused(&page, 502, "Example SSO cannot be reached.");
    // Whoever loads the page again comes to that to sign in.
    browser.get(super::BEGIN).await.assert_has(&["<h1>Sign in</h1>"]);
    site.guarded.browser("adam").await;
}

#[tokio::test]
async fn many_who_wait_for_a_silent_provider_hinder_no_token() {
    let site = OidcSite::start().await;
    site.provider.change(|behaviour| behaviour.mood = Some((METADATA, Mood::Silent)));
    let waiting = (0..40).map(|_| async {
        let mut browser = site.browser().await;
        browser.post(super::BEGIN, &[("next", ""), ("kept", "")]).await.status
    });
    let beside = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let began = Instant::now();
        site.guarded.browser("adam").await;
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    };
    let (statuses, ()) = futures_util::join!(futures_util::future::join_all(waiting), beside);
    let count = |status| statuses.iter().filter(|other| **other == status).count();
    assert_eq!((count(504), count(503)), (16, 24), "{statuses:?}");
}

#[tokio::test]
async fn an_answer_counts_once_and_in_its_browser_alone() {
    let site = OidcSite::start().await;
    let home = format!("{HOME}/");
    let mut browser = site.browser().await;
    let address = site.begin(&mut browser, &home).await;
    let back = site.at_provider(&address).await;
    let mut twin = site.browser().await;
    twin.steal(&browser);

    let not_here = "This sign-in did not begin in this browser";
    let mut other = site.browser().await;
    assert_refused(&other.get(&back).await, 400, not_here);
    site.begin(&mut other, &home).await;
    assert_refused(&other.get(&back).await, 400, not_here);
    assert_refused(&other.get("/console/sign-in/callback").await, 400, not_here);
    for state in ["", "9.x", "-1.x", "0.x", "0", "a&state=b"] {
        let path = format!("/console/sign-in/callback?code=1&state={state}");
        assert_refused(&other.get(&path).await, 400, not_here);
    }

    browser.get(&back).await.assert_has(&["Role: viewer"]);
    assert_refused(&browser.get(&back).await, 400, not_here);
    // Whoever has the cookie of before has no new code.
    assert_refused(&twin.get(&back).await, 400, "it was used already, or is too old");
}

#[tokio::test]
async fn a_refusal_of_the_provider_has_a_page() {
    let site = OidcSite::start().await;
    for (error, status, text) in [
        ("access_denied", 403, "Example SSO does not let you sign in, or you stopped there."),
        ("server_error", 502, "Example SSO cannot be reached."),
        ("<script>", 502, "answered something that does not count"),
    ] {
        let mut browser = site.browser().await;
        let address = site.begin(&mut browser, &format!("{HOME}/audit")).await;
        let address = url::Url::parse(&address).unwrap();
        let state = address.query_pairs().find(|(name, _)| name == "state").unwrap().1;
        let answer = url::form_urlencoded::Serializer::new(String::new())
            .append_pair("error", error)
            .append_pair("state", &state)
            .finish();
        let page = browser.get(&format!("/console/sign-in/callback?{answer}")).await;
        assert_refused(&page, status, text);
        page.assert_has(&["/console/sign-in?next=%2Fconsole%2Ft%2Fdefault%2Faudit"]);
        assert!(!page.text.contains("<script>"));
    }
    let mut browser = site.browser().await;
    let address = site.begin(&mut browser, &format!("{HOME}/")).await;
    let back = site.at_provider(&address).await;
    let elsewhere = back.replace("iss=http", "iss=https");
    let text = "answered something that does not count";
    assert_refused(&browser.get(&elsewhere).await, 502, text);
}

#[tokio::test]
async fn several_tabs_sign_in_and_their_number_is_bounded() {
    let site = OidcSite::start().await;
    let mut browser = site.browser().await;
    let mut addresses = Vec::new();
    for _ in 0..6 {
        addresses.push(site.begin(&mut browser, &format!("{HOME}/audit")).await);
    }
    let cookies = (0..10).filter(|n| browser.cookie(&format!("polynym_sign_in_{n}")).is_some());
    assert_eq!(cookies.count(), 4);
    let mut signed_in = 0;
    for address in addresses {
        let back = site.at_provider(&address).await;
        signed_in += usize::from(browser.get(&back).await.status == 200);
    }
    assert_eq!(signed_in, 4);
}

#[tokio::test]
async fn without_a_provider_there_is_no_such_page() {
    let site = crate::browser::Site::with_sample();
    let mut browser = site.browser().await;
    assert_eq!(browser.get("/console/sign-in/callback?state=0.x").await.status, 404);
    assert_eq!(browser.post(super::BEGIN, &[("next", "")]).await.status, 404);
}

//! Sessions of people: who they are, what they may do, and when they end.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;
use testkit::server::polynym;

use super::keys::Key;
use super::{BEGIN, OidcSite, leads_to, table};
use crate::browser::{HOME, path};

/// The time within which a server follows the file.
const TIMEOUT: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_person_signs_in_and_is_led_back_to_the_page() {
    let site = OidcSite::start_with(Key::rsa("first"), "").await;
    let mut browser = site.browser().await;
    browser.headers = vec![("sec-fetch-site", "same-origin".to_owned())];
    let audit = format!("{HOME}/audit");
    let address = site.begin(&mut browser, &audit).await;
    assert!(browser.cookie("polynym_sign_in_0").is_some());
    let back = site.at_provider(&address).await;
    // The provider is another site: browsers send the cookie of the sign-in alone then.
    browser.headers = vec![("sec-fetch-site", "cross-site".to_owned())];
    let shown = browser.get(&back).await;
    assert_eq!((shown.status, &*shown.path), (200, &*audit));
    assert!(browser.cookie("polynym_sign_in_0").is_none(), "a sign-in counts once");
    browser.headers = vec![];
    let shown = browser.get(&audit).await;
    shown.assert_has(&["<h1>Audit", "oidc:ann@example.org", "Role: viewer"]);
    browser.get("/console/t/acme/").await.assert_has(&["Your credential is not for this tenant."]);
}

#[tokio::test]
async fn a_form_of_an_ended_session_is_sent_after_signing_in() {
    let site = OidcSite::start().await;
    let mut browser = site.browser().await;
    let search = &format!("{HOME}/search");
    let asked = browser.post(search, &[("q", "@joe")]).await;
    asked.assert_has(&["Your session has ended. Your form is kept."]);
    let address = leads_to(&browser.submit(&asked, BEGIN, &[]).await);
    let back = site.at_provider(&address).await;
    let resumed = browser.get(&back).await;
    resumed.assert_has(&["Your form was not sent. It is kept"]);
    browser.submit(&resumed, search, &[]).await.assert_has(&["handle, joe", ">Joe Smith</a>"]);
}

#[tokio::test]
async fn a_sign_in_leads_to_pages_of_the_console_alone() {
    let site = OidcSite::start().await;
    for next in ["https://evil.example/", "//evil.example/", "/other", "/console/../other"] {
        let mut browser = site.browser().await;
        let begun = browser.post(BEGIN, &[("next", next), ("kept", "")]).await;
        let back = site.at_provider(&leads_to(&begun)).await;
        assert_eq!(browser.get(&back).await.path, "/console/t/default/", "{next}");
    }
}

#[tokio::test]
async fn histories_name_the_person() {
    let site = OidcSite::start().await;
    site.provider.set(json!({ "groups": ["staff", "admins"] }));
    let mut browser = site.browser().await;
    site.sign_in(&mut browser, "/console/").await.assert_has(&["Role: admin"]);
    let user = path(&mut browser, "@joe").await;
    let page = browser.get(&format!("{user}/disable")).await;
    browser.submit(&page, &format!("{user}/disable"), &[("reason", "ticket 12")]).await;
    let history = browser.get(&format!("{user}/history")).await;
    history.assert_has(&["oidc:ann@example.org", "ticket 12"]);
    let by_caller = format!("{HOME}/audit?caller=oidc%3Aann%40example.org");
    browser.get(&by_caller).await.assert_has(&["oidc:ann@example.org", "ticket 12"]);
    browser.get("/console/callers").await.assert_has(&["adam"]);
}

#[tokio::test]
async fn a_grant_that_is_removed_or_lowered_counts_at_once() {
    let site = OidcSite::start().await;
    site.provider.set(json!({ "groups": ["support", "admins"] }));
    let mut browser = site.browser().await;
    let home = format!("{HOME}/");
    site.sign_in(&mut browser, &home).await.assert_has(&["Role: admin"]);
    let began = Instant::now();
    site.edit("group = \"admins\"", "group = \"others\"");
    while !browser.get(&home).await.text.contains("Role: viewer") {
        assert!(began.elapsed() < TIMEOUT);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    site.edit("group = \"support\"", "group = \"nobody\"");
    while !browser.get(&home).await.text.contains("<h1>Sign in</h1>") {
        assert!(began.elapsed() < TIMEOUT);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let refused = site.sign_in(&mut browser, &home).await;
    refused.assert_has(&["Example SSO knows you, and none of your groups may use this console."]);
    assert_eq!(refused.status, 403);
}

#[tokio::test]
async fn a_session_ends_with_the_token_of_the_provider() {
    let site = OidcSite::start().await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    site.provider.set(json!({ "exp": now + 6 }));
    let mut browser = site.browser().await;
    let home = format!("{HOME}/");
    site.sign_in(&mut browser, &home).await.assert_has(&["Role: viewer"]);
    let began = Instant::now();
    while !browser.get(&home).await.text.contains("<h1>Sign in</h1>") {
        assert!(began.elapsed() < TIMEOUT);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() >= now + 6);

    // The file may say how long sessions last.
    site.edit("name = \"Example SSO\"", "name = \"Example SSO\"\nsession = \"1h\"");
    tokio::time::sleep(Duration::from_secs(6)).await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    site.provider.set(json!({ "exp": now + 2 }));
    site.sign_in(&mut browser, &home).await.assert_has(&["Role: viewer"]);
    tokio::time::sleep(Duration::from_secs(3)).await;
    browser.get(&home).await.assert_has(&["Role: viewer"]);
}

#[tokio::test]
async fn signing_out_ends_the_session_here_and_at_the_provider() {
    let site = OidcSite::start().await;
    let mut browser = site.browser().await;
    let home = format!("{HOME}/");
    site.sign_in(&mut browser, &home).await;
    let mut thief = site.browser().await;
    thief.steal(&browser);
    thief.get(&home).await.assert_has(&["Role: viewer"]);
    let left = browser.post("/console/sign-out", &[]).await;
    left.assert_has(&["<h1>You are signed out</h1>"]);
    let address = url::Url::parse(&leads_to(&left)).unwrap();
    assert!(address.as_str().starts_with(&format!("{}/end?", site.provider.url)));
    let query: std::collections::HashMap<_, _> = address.query_pairs().into_owned().collect();
    assert_eq!(query["client_id"], "polynym");
    assert_eq!(query["id_token_hint"].split('.').count(), 3);
    let back = format!("{}/console/sign-in", site.guarded.site.url);
    assert_eq!(query["post_logout_redirect_uri"], back);
    for ended in [&mut browser, &mut thief] {
        ended.get(&home).await.assert_has(&["<h1>Sign in</h1>"]);
    }
}

#[tokio::test]
async fn people_have_the_limits_of_callers() {
    let site = OidcSite::start_with(Key::p256("first"), "rate = { calls = 1 }").await;
    let mut browser = site.browser().await;
    site.sign_in(&mut browser, &format!("{HOME}/")).await;
    // The console waits for the calls of a page as other clients do.
    let began = Instant::now();
    for _ in 0..4 {
        browser.get(&format!("{HOME}/audit")).await.assert_has(&["<h1>Audit"]);
    }
    assert!(began.elapsed() > Duration::from_secs(2), "{:?}", began.elapsed());
}

#[tokio::test]
async fn tokens_open_sessions_beside_the_provider() {
    let site = OidcSite::start().await;
    let mut adam = site.guarded.browser("adam").await;
    adam.get(&format!("{HOME}/")).await.assert_has(&["adam", "Role: admin"]);
}

#[tokio::test]
async fn the_claims_and_the_prompt_are_those_of_the_settings() {
    let settings = "name_claim = \"preferred_username\"\nprompt = \"login\"\n\
        groups_claim = \"realm_access.roles\"";
    let site = OidcSite::start_with(Key::p256("first"), settings).await;
    let roles = json!({ "roles": ["support"] });
    site.provider.set(json!({ "email": null, "groups": null, "realm_access": roles }));
    let mut browser = site.browser().await;
    let address = site.begin(&mut browser, "/console/").await;
    assert!(address.contains("prompt=login"), "{address}");
    let back = site.at_provider(&address).await;
    browser.get(&back).await;
    browser.get("/console/").await.assert_has(&["oidc:ann", "Role: viewer"]);
}

#[test]
fn a_file_with_a_provider_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("callers.toml");
    let check = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let checked = polynym(&["token", "check", "--credentials", file.to_str().unwrap()]);
        let output = { checked }.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    };
    let (is_valid, text) = check(&table("https://sso.example", "", super::GRANTS));
    assert!(is_valid && text.contains("people sign in"), "{text}");
    let (is_valid, text) = check(&table("http://sso.example", "prompt = \"none\"", ""));
    assert!(!is_valid && !text.contains(super::SECRET), "{text}");
    for part in ["oidc: issuer:", "oidc: prompt:", "[[oidc.grant]]"] {
        assert!(text.contains(part), "{text}");
    }
}

#[tokio::test]
async fn an_admin_by_a_provider_ends_sessions_and_makes_no_tokens() {
    let site = OidcSite::start().await;
    site.provider.set(json!({ "groups": ["admins"] }));
    let (mut ann, mut adam) = (site.browser().await, site.guarded.browser("adam").await);
    site.sign_in(&mut ann, "/console/").await.assert_has(&["Role: admin"]);
    let listed = ann.get("/console/callers").await;
    listed.assert_has(&["<th scope=\"row\">adam</th>"]);
    assert!(!listed.text.contains("New token"), "{}", listed.text);
    let before = std::fs::read(site.guarded.file()).unwrap();
    for form in ["new", "extend", "revoke"] {
        let fields = [("name", "adam"), ("role", "admin"), ("tenants", "*"), ("valid", "1d")];
        let refused = ann.post(&format!("/console/callers/{form}"), &fields).await;
        refused.assert_has(&["People who sign in by a provider change no credentials"]);
        assert_eq!(refused.status, 403, "{form}");
    }
    assert_eq!(std::fs::read(site.guarded.file()).unwrap(), before);

    let sessions = adam.get("/console/callers/sessions").await;
    sessions.assert_has(&["oidc:ann@example.org", "adam <span class=\"mark\">you</span>"]);
    // The newest is first: that of the person.
    let id = sessions.attribute("name=\"session\" value", "");
    adam.post("/console/callers/sessions/end", &[("session", &id)]).await;
    ann.get("/console/callers").await.assert_has(&["<h1>Sign in</h1>"]);
}

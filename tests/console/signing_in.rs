//! Sessions, and what protects them.

use std::fs;
use std::time::Duration;

use http::Request;
use http::header::{CONTENT_TYPE, SET_COOKIE, STRICT_TRANSPORT_SECURITY};
use http_body_util::Full;

use crate::browser::{HOME, Site};
use crate::tokens::GuardedSite;

#[tokio::test]
async fn a_token_opens_a_session_which_ends_with_it() {
    let callers = [("ana", "viewer", "*"), ("adam", "admin", "*"), ("graphs", "monitor", "*")];
    let site = GuardedSite::start(&callers);
    let mut browser = site.site.browser().await;
    let home = format!("{HOME}/");
    let asked = browser.get(&home).await;
    asked.assert_has(&["<h1>Sign in</h1>", &format!("value=\"{home}\"")]);
    let wrong = browser.post("/console/sign-in", &[("token", "pn_wrong")]).await;
    wrong.assert_has(&["This token is not valid"]);
    assert_eq!(wrong.status, 401);
    let monitor = [("token", site.token("graphs")), ("next", "")];
    let metrics_only = browser.post("/console/sign-in", &monitor).await;
    metrics_only.assert_has(&["This token is for reading metrics"]);
    assert_eq!(metrics_only.status, 401);
    let right = [("token", site.token("ana")), ("next", "")];
    browser.post("/console/sign-in", &right).await.assert_has(&["Who is this?"]);
    browser.get(&home).await.assert_has(&["ana", "Role: viewer"]);

    let mut thief = site.site.browser().await;
    thief.steal(&browser);
    thief.get(&home).await.assert_has(&["Role: viewer"]);
    site.revoke("ana");
    while thief.get(&home).await.text.contains("Role: viewer") {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    browser.get(&home).await.assert_has(&["<h1>Sign in</h1>"]);
}

#[tokio::test]
async fn a_session_stays_ended_when_its_token_is_made_again() {
    let site = GuardedSite::start(&[("ana", "viewer", "*"), ("adam", "admin", "*")]);
    let (idle, mut busy) = (site.browser("ana").await, site.browser("ana").await);
    let mut other = site.browser("adam").await;
    let home = format!("{HOME}/");
    let before = fs::read(site.file()).unwrap();
    site.revoke("ana");
    while busy.get(&home).await.text.contains("Role: viewer") {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    fs::write(site.file(), before).unwrap();
    let right = [("token", site.token("ana")), ("next", "")];
    while busy.post("/console/sign-in", &right).await.status != 200 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    busy.get(&home).await.assert_has(&["Role: viewer"]);
    other.get(&home).await.assert_has(&["Role: admin"]);
    let mut thief = site.site.browser().await;
    thief.steal(&idle);
    thief.get(&home).await.assert_has(&["<h1>Sign in</h1>"]);
}

#[tokio::test]
async fn a_form_of_a_lost_session_is_kept() {
    let site = GuardedSite::start(&[("ana", "viewer", "*")]);
    let mut browser = site.site.browser().await;
    let path = &format!("{HOME}/search");
    let asked = browser.post(path, &[("q", "@joe")]).await;
    asked.assert_has(&["Your session has ended. Your form is kept."]);
    let token = [("token", site.token("ana"))];
    let resumed = browser.submit(&asked, "/console/sign-in", &token).await;
    resumed.assert_has(&["You are signed in"]);
    let found = browser.submit(&resumed, path, &[]).await;
    found.assert_has(&["handle, joe", ">Joe Smith</a>"]);
}

#[tokio::test]
async fn parts_of_pages_end_with_their_session() {
    let site = GuardedSite::start(&[("ana", "admin", "*")]);
    let mut browser = site.browser("ana").await;
    browser.post("/console/sign-out", &[]).await;
    browser.headers = vec![("hx-request", "true".to_owned())];
    let panels = ["/console/health", "/console/t/default/import/1", "/console/t/default/bulk/1"];
    for panel in panels {
        let part = browser.get(panel).await;
        assert_eq!((part.status, &*part.text), (401, ""), "{panel}");
        assert_eq!(part.response.header("hx-refresh"), "true", "{panel}");
    }
    let typed = browser.post(&format!("{HOME}/search"), &[("q", "@joe")]).await;
    assert_eq!((typed.status, &*typed.text), (401, ""));
    assert!(!typed.response.headers.contains_key("hx-refresh"));
}

#[tokio::test]
async fn pages_are_protected() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let page = browser.get("/console/").await;
    assert_eq!(page.response.header("cache-control"), "no-store");
    assert_eq!(page.response.header("x-frame-options"), "DENY");
    // Without TLS, browsers must not ask for it.
    assert!(!page.response.headers.contains_key(STRICT_TRANSPORT_SECURITY));
    let policy = page.response.header("content-security-policy");
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
    assert!(!policy.contains("unsafe"), "{policy}");

    let search = &format!("{HOME}/search");
    browser.headers = vec![("sec-fetch-site", "cross-site".to_owned())];
    assert_eq!(browser.post(search, &[("q", "@joe")]).await.status, 403);
    browser.headers = vec![("sec-fetch-site", "same-origin".to_owned())];
    assert_eq!(browser.post(search, &[("q", "@joe")]).await.status, 200);
    browser.headers = vec![("host", "evil.example".to_owned())];
    assert_eq!(browser.get("/console/").await.status, 403);

    browser.headers.clear();
    browser.get("/console/").await;
    let old = browser.cookie("polynym_session").unwrap().to_owned();
    browser.post("/console/sign-out", &[]).await.assert_has(&["<h1>Sign in</h1>"]);
    assert_ne!(browser.cookie("polynym_session"), Some(&*old));
}

#[tokio::test]
async fn behind_a_proxy_the_cookie_is_sent_with_tls_alone() {
    let callers = [("ana", "viewer", "default")];
    let site = GuardedSite::start_with(&callers, &["--behind-proxy"]);
    let mut browser = site.site.browser().await;
    let sign_in = Request::post("/console/sign-in")
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(Full::from(format!("token={}", site.token("ana"))));
    let response = browser.open(sign_in.unwrap()).await;
    let cookie = response.headers()[SET_COOKIE].to_str().unwrap();
    assert!(cookie.starts_with("__Host-polynym_session=") && cookie.contains("Secure"), "{cookie}");
    assert_eq!(response.headers()[STRICT_TRANSPORT_SECURITY], "max-age=31536000");
}

#[tokio::test]
async fn a_caller_opens_no_page_of_a_tenant_of_others() {
    let callers = [("ana", "admin", "acme"), ("eva", "admin", "eu-*")];
    let site = GuardedSite::start(&callers);
    let mut ana = site.browser("ana").await;
    ana.get("/console/t/acme/duplicates").await.assert_has(&["<h1>Duplicates"]);
    for page in ["", "duplicates", "duplicates/1", "import", "import/1/rejects", "users/new"] {
        let denied = ana.get(&format!("/console/t/default/{page}")).await;
        assert_eq!(denied.status, 403, "{page}");
        denied.assert_has(&["Not allowed", "Your credential is not for this tenant."]);
    }
    ana.headers = vec![("accept", "text/event-stream".to_owned())];
    let events = ana.get("/console/t/default/events/stream").await;
    events.assert_has(&["You may not follow these events.", "event: close"]);

    let mut eva = site.site.browser().await;
    let fields = [("token", site.token("eva")), ("next", "")];
    eva.post("/console/sign-in", &fields).await.assert_has(&["<h1>Tenants"]);
}

#[tokio::test]
async fn a_link_of_another_site_opens_no_session() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    browser.headers = vec![("sec-fetch-site", "cross-site".to_owned())];
    for page in ["/console/", "/console/t/default/audit?kind=%22"] {
        let arrived = browser.get(page).await;
        assert_eq!((arrived.status, &*arrived.path), (200, page));
        assert_eq!(arrived.response.header("refresh"), "0");
        arrived.assert_has(&[&format!("href=\"{page}\"")]);
        assert_eq!(browser.cookie("polynym_session"), None);
    }
    browser.headers.clear();
    browser.get("/console/").await.assert_has(&["Who is this?"]);
    let session = browser.cookie("polynym_session").unwrap().to_owned();
    browser.get("/console/t/default/").await.assert_has(&["Who is this?"]);
    assert_eq!(browser.cookie("polynym_session"), Some(&*session));
}

#[tokio::test]
async fn a_form_without_fields_is_kept_and_its_address_is_a_page() {
    let guarded = GuardedSite::start(&[("adam", "admin", "*")]);
    let mut browser = guarded.site.browser().await;
    let path = format!("{HOME}/saved/1/remove");
    let kept = browser.post(&path, &[]).await;
    kept.assert_has(&["Your form is kept"]);
    let token = guarded.token("adam").to_owned();
    let again = browser.submit(&kept, "/console/sign-in", &[("token", &token)]).await;
    again.assert_has(&["Send the form", &format!("action=\"{path}\"")]);
    browser.submit(&again, &path, &[]).await.assert_has(&["Who is this?"]);
    let page = browser.get(&path).await;
    assert_eq!(page.status, 404);
    page.assert_has(&["There is no such page.", "Choose a page from the menu"]);
}

#[tokio::test]
async fn the_query_of_an_address_stays_when_somebody_signs_in() {
    let guarded = GuardedSite::start(&[("adam", "admin", "*")]);
    let mut browser = guarded.site.browser().await;
    let page = browser.get(&format!("{HOME}/audit?reason=a%26b")).await;
    let token = guarded.token("adam").to_owned();
    let back = browser.submit(&page, "/console/sign-in", &[("token", &token)]).await;
    assert_eq!(back.path, format!("{HOME}/audit?reason=a%26b"));
}

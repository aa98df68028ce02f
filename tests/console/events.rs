//! Events: live as a stream, and page by page.

use http::Request;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use testkit::calls::{Client, handle, user};

use crate::browser::{Answer, Browser, Site};
use crate::tokens::GuardedSite;

const EVENTS: &str = "/console/t/default/events";
const STREAM: &str = "/console/t/default/events/stream";

/// A stream of events.
struct Stream {
    body: Incoming,
    text: String,
}

impl Stream {
    /// Opens a stream on a connection of its own, which ends with it.
    async fn open(site: &Site, browser: &Browser, query: &str, last: &str) -> Self {
        let mut other = site.browser().await;
        other.steal(browser);
        let mut request = Request::get(format!("{STREAM}?{query}"));
        if !last.is_empty() {
            request = request.header("last-event-id", last);
        }
        let response = other.open(request.body(http_body_util::Full::default()).unwrap()).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { body: response.into_body(), text: String::new() }
    }

    /// Reads on until the stream has this text.
    async fn wait_for(&mut self, text: &str) -> &str {
        while !self.text.contains(text) {
            let frame = self.body.frame().await.unwrap_or_else(|| panic!("{}", self.text));
            let bytes = frame.unwrap().into_data().unwrap();
            self.text.push_str(&String::from_utf8_lossy(&bytes));
        }
        &self.text
    }

    /// The id of the last whole event.
    fn last_id(&self) -> String {
        let whole = self.text.rsplit_once("\n\n").unwrap().0;
        let id = whole.lines().rev().find_map(|line| line.strip_prefix("id: "));
        id.unwrap().to_owned()
    }
}

/// Follows the link that refreshes a page.
async fn refresh(browser: &mut Browser, page: &Answer) -> Answer {
    browser.get(&page.attribute("href", &format!("{EVENTS}?")).replace("&#38;", "&")).await
}

#[tokio::test]
async fn without_scripts_a_page_has_the_events_since_the_one_before() {
    let site = Site::with_sample();
    let mut client = Client::connect(&site.server.url).await;
    let mut browser = site.browser().await;
    let now = browser.get(EVENTS).await;
    now.assert_has(&["Changes of users will appear here from now on", "polynym watch"]);
    let created = client.create(user("Zoe", vec![handle("zoe")])).await.unwrap();
    let mut page = refresh(&mut browser, &now).await;
    // The feed may be a moment behind the call.
    while !page.text.contains(&created.user_id) {
        page = refresh(&mut browser, &page).await;
    }
    page.assert_has(&["<h3>created</h3>", "anonymous", "CreateUser"]);
    assert!(page.text.contains("zoe (primary, not verified)"), "what the event changed");
    let empty = refresh(&mut browser, &page).await;
    empty.assert_has(&["No changes since you last loaded this page"]);

    let by_user = [("user", "@zoe"), ("kind", "IDENTITY_LINKED")];
    let filtered = browser.post(EVENTS, &by_user).await;
    assert!(filtered.path.contains(&created.user_id), "{}", filtered.path);
    assert!(!filtered.path.contains("zoe"), "{}", filtered.path);
    client.update(v1_user(&created.user_id, "Zora"), &["display_name"]).await.unwrap();
    client.link(&created.user_id, handle("zora")).await.unwrap();
    let mut page = refresh(&mut browser, &filtered).await;
    while !page.text.contains("<h3>identity linked</h3>") {
        page = refresh(&mut browser, &page).await;
    }
    assert!(!page.text.contains("<h3>updated</h3>"), "{}", page.text);
    let unclear = browser.post(EVENTS, &[("user", "Zoe Who")]).await;
    unclear.assert_has(&["Write the id or an identifier of a user"]);
}

fn v1_user(id: &str, name: &str) -> polynym_proto::v1::User {
    polynym_proto::v1::User { user_id: id.to_owned(), ..user(name, Vec::new()) }
}

#[tokio::test]
async fn a_stream_goes_on_after_the_last_event_and_ends_when_the_browser_leaves() {
    let site = Site::with_sample();
    let mut client = Client::connect(&site.server.url).await;
    let mut browser = site.browser().await;
    browser.get(EVENTS).await.assert_has(&["hx-sse:connect=\"/console/t/default/events/stream?"]);
    let mut stream = Stream::open(&site, &browser, "kind=USER_CREATED", "").await;
    stream.wait_for("\n\n").await;
    let one = client.create(user("One", Vec::new())).await.unwrap();
    stream.wait_for(&one.user_id).await;
    let last = stream.last_id();
    drop(stream);
    watches_become(&mut browser, 0).await;

    let two = client.create(user("Two", Vec::new())).await.unwrap();
    let mut again = Stream::open(&site, &browser, "kind=USER_CREATED", &last).await;
    let text = again.wait_for(&two.user_id).await;
    assert!(text.contains("<h3>created</h3>") && !text.contains(&one.user_id), "{text}");
    watches_become(&mut browser, 1).await;
    let _other = Stream::open(&site, &browser, "", "").await;
    let third = browser.get(STREAM).await;
    assert_eq!(third.status, 429);
    third.assert_has(&["You already follow events on two pages"]);
    drop(again);
    // The server notices a moment later that the browser has left.
    while browser_status(&site, &browser).await == 429 {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    watches_become(&mut browser, 1).await;
}

/// The status of the answer to a browser that opens a stream and leaves at once.
async fn browser_status(site: &Site, browser: &Browser) -> u16 {
    let mut other = site.browser().await;
    other.steal(browser);
    let request = Request::get(STREAM).body(http_body_util::Full::default()).unwrap();
    other.open(request).await.status().as_u16()
}

/// Waits until the server has this number of open watches.
async fn watches_become(browser: &mut Browser, count: usize) {
    let row = format!("<dt>Open watches</dt><dd>{count}</dd>");
    while !browser.get("/console/health").await.text.contains(&row) {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn a_stream_ends_with_its_token_and_with_its_session() {
    let site = GuardedSite::start(&[("vera", "viewer", "default"), ("adam", "admin", "*")]);
    let (viewer, mut admin) = (site.browser("vera").await, site.browser("adam").await);
    let mut streams = [
        Stream::open(&site.site, &viewer, "", "").await,
        Stream::open(&site.site, &admin, "", "").await,
    ];
    let elsewhere = admin.get("/console/t/nowhere/events/stream").await;
    assert_eq!(elsewhere.status, 404, "{}", elsewhere.text);
    let mut stranger = site.site.browser().await;
    stranger.headers = vec![("accept", "text/html, text/event-stream".to_owned())];
    let refused = stranger.get(STREAM).await;
    refused.assert_has(&["The session has ended", "event: close"]);
    site.revoke("vera");
    admin.post("/console/sign-out", &[]).await;
    for stream in &mut streams {
        let text = stream.wait_for("event: close").await;
        assert!(text.contains("The session has ended"), "{text}");
    }
}

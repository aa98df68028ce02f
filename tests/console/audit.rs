//! The audit: what is asked for as chips, periods, files, and changes as they happen.

use http::Request;
use http_body_util::{BodyExt, Full};
use polynym_proto::v1;
use testkit::calls::{Client, handle, text, user};

use crate::browser::{Answer, Browser, HOME, Site};
use crate::tokens::GuardedSite;

const AUDIT: &str = "/console/t/default/audit";

async fn with_changes() -> (Site, Browser, Client, Vec<String>) {
    let site = Site::start(&[]);
    let mut client = Client::connect(&site.server.url).await;
    let mut ids = Vec::new();
    for name in ["ann", "=bob", "cleo"] {
        ids.push(client.create(user(name, Vec::new())).await.unwrap().user_id);
    }
    let message = v1::DisableUserRequest { user_id: ids[0].clone(), ..Default::default() };
    let mut request = tonic::Request::new(message);
    request.metadata_mut().insert("polynym-reason", "left, \"ticket\" 7".parse().unwrap());
    client.registry.disable_user(request).await.unwrap();
    let browser = site.browser().await;
    (site, browser, client, ids)
}

/// The number of lines.
fn lines(page: &Answer) -> usize {
    page.text.matches("<li data-event=").count()
}

/// The addresses that remove a chip.
fn chips(page: &Answer) -> Vec<&str> {
    let links = page.text.split("<a class=\"chip\" href=\"").skip(1);
    links.map(|link| link.split('"').next().unwrap()).collect()
}

#[tokio::test]
async fn what_is_asked_for_can_be_taken_back() {
    let (_site, mut browser, ..) = with_changes().await;
    let all = browser.get(AUDIT).await;
    assert_eq!((lines(&all), chips(&all).len()), (4, 0));
    let kind = i32::from(v1::EventType::UserCreated).to_string();
    let fields = [("caller", "anonymous"), ("kind", &*kind), ("from", "2026-01-01")];
    let some = browser.post(AUDIT, &fields).await;
    some.assert_has(&["Caller: <bdi>anonymous</bdi>", "Kind: <bdi>created</bdi>"]);
    assert_eq!((lines(&some), chips(&some).len()), (3, 3));
    let kinds = browser.get(chips(&some)[2]).await;
    assert_eq!((lines(&kinds), chips(&kinds).len()), (4, 2));
    let since = browser.get(chips(&kinds)[0]).await;
    let all = browser.get(chips(&since)[0]).await;
    assert_eq!((&*all.path, chips(&all).len()), (AUDIT, 0));
    let odd = browser.post(AUDIT, &[("caller", "<b>\"&")]).await;
    odd.assert_has(&["Caller: <bdi>&#60;b&#62;&#34;&#38;</bdi>"]);
    let forged = format!("{}/without/nonsense", odd.path);
    assert_eq!(browser.get(&forged).await.path, odd.path);
    assert_eq!(browser.get(&format!("{AUDIT}/999/without/caller")).await.status, 404);
}

#[tokio::test]
async fn periods_have_buttons_and_times_have_offsets() {
    let (_site, mut browser, mut client, ids) = with_changes().await;
    let today = browser.post(AUDIT, &[("period", "Today"), ("caller", "anonymous")]).await;
    assert_eq!((lines(&today), chips(&today).len()), (4, 2));
    let yesterday = browser.post(AUDIT, &[("period", "Yesterday")]).await;
    assert_eq!((lines(&yesterday), chips(&yesterday).len()), (0, 1));
    yesterday
        .assert_has(&["Period: <bdi>Yesterday</bdi>", "value=\"Yesterday\" aria-pressed=\"true\""]);
    yesterday.assert_has(&["value=\"Today\" aria-pressed=\"false\""]);
    // Scripts send the ends of the period with the time of day.
    let [from, to] = [&yesterday, &today].map(|page| page.attribute("value", "20"));
    let [from, to] = [from, to].map(|day| format!("{day}T00:00:00.000Z"));
    let same = browser.post(AUDIT, &[("from", &from), ("to", &to)]).await;
    same.assert_has(&["Period: <bdi>Yesterday</bdi>"]);
    let since = browser.post(AUDIT, &[("from", &from)]).await;
    since.assert_has(&["From: <bdi>", "value=\"Yesterday\" aria-pressed=\"false\""]);
    let all = browser.get(chips(&yesterday)[0]).await;
    assert_eq!((&*all.path, lines(&all)), (AUDIT, 4), "both ends of the period are taken back");
    let week = browser.post(AUDIT, &[("period", "Last 7 days")]).await;
    assert_eq!(lines(&week), 4);

    let request = v1::ListEventsRequest::default();
    let events = client.directory.list_events(request).await.unwrap().into_inner().events;
    let last = events[0].time.as_ref().unwrap();
    // The same moment on clocks two hours ahead and five behind.
    for (offset, seconds) in [("+02:00", 7_200), ("-05:00", -18_000), ("Z", 0), ("", 0)] {
        let local = prost_types::Timestamp { seconds: last.seconds + seconds, ..*last };
        let local = local.to_string().replace('T', " ").replace('Z', "");
        let page = browser.post(AUDIT, &[("from", &format!("{local}{offset}"))]).await;
        assert_eq!((page.status, lines(&page)), (200, 1), "{local}{offset}");
        let page = browser.post(AUDIT, &[("to", &format!("{local} {offset}"))]).await;
        assert_eq!((page.status, lines(&page)), (200, 3), "{local} {offset}");
    }
    let wrong = browser.post(AUDIT, &[("from", "2026-01-31 12:00 +25:99")]).await;
    wrong.assert_has(&["From: not a time. Write 2026-01-31, 2026-01-31 12:00, or"]);
    assert_eq!(wrong.status, 422);
    wrong.assert_has(&["value=\"2026-01-31 12:00 +25:99\" ", "aria-invalid=\"true\""]);
    wrong.assert_has(&["name=\"caller\"", "id=\"period-problem\""]);
    let kept = browser.post(AUDIT, &[("to", "soon"), ("caller", "<ann>")]).await;
    kept.assert_has(&["To: not a time.", "value=\"soon\"", "value=\"&#60;ann&#62;\""]);
    let day = &last.to_string()[..10];
    let own_day = browser.post(AUDIT, &[("from", day), ("to", day)]).await;
    assert_eq!(lines(&own_day), 4, "the day as a whole");
    let begun = browser
        .post(AUDIT, &[("period", "Today"), ("day-0", &format!("{day}T00:00:00.000Z"))])
        .await;
    begun.assert_has(&["Period: <bdi>Today</bdi>"]);
    let own = format!("{HOME}/users/{}/history", ids[0]);
    let wrong = browser.get(&format!("{own}?from=2026-01-01&to=then")).await;
    wrong.assert_has(&["To: not a time.", "value=\"then\"", "value=\"2026-01-01\""]);
    assert_eq!(wrong.status, 422);
    let own_day = browser.get(&format!("{own}?from={day}&to={day}")).await;
    own_day.assert_has(&["<h3>disabled</h3>"]);
    let history = format!("{HOME}/users/{}/history?from=2026-01-31T12:00%2B02:00", ids[0]);
    browser.get(&history).await.assert_has(&["<h3>disabled</h3>"]);
}

#[tokio::test]
async fn the_audit_is_saved_as_a_file() {
    let (site, _, mut client, ids) = with_changes().await;
    for n in 0..510 {
        let mut changed = v1::User { user_id: ids[1].clone(), ..Default::default() };
        changed.attributes.insert("n".to_owned(), text(&n.to_string()));
        client.update(changed, &["attributes.n"]).await.unwrap();
    }
    // The connection of an idle browser ends meanwhile.
    let mut browser = site.browser().await;
    let page = browser.get(AUDIT).await;
    let link = page.attribute("href", &format!("{AUDIT}/export?format=csv"));
    let table = browser.get(&link).await;
    let disposition = table.response.header("content-disposition");
    assert_eq!(disposition, "attachment; filename=\"audit.csv\"");
    let rows: Vec<_> = table.text.trim_start_matches('\u{feff}').lines().collect();
    assert!(rows[0].starts_with("time,caller,kind,user_id,display_name,"), "{}", rows[0]);
    assert_eq!(rows.len(), 1 + 514);
    assert!(rows[1].contains(&format!(",anonymous,updated,{},'=bob,", ids[1])), "{}", rows[1]);
    assert!(rows[1].contains(",attributes.n: 508 → 509,"), "{}", rows[1]);

    let some = browser.post(AUDIT, &[("reason", "TICKET")]).await;
    let table = browser.get(&format!("{}/export?format=csv", some.path)).await;
    let rows: Vec<_> = table.text.lines().collect();
    assert_eq!(rows.len(), 2);
    assert!(rows[1].contains(",\"left, \"\"ticket\"\" 7\","), "{}", rows[1]);
    let file = browser.get(&format!("{}/export?format=jsonl", some.path)).await;
    let event: serde_json::Value = serde_json::from_str(file.text.trim()).unwrap();
    assert_eq!(event["userId"], ids[0].as_str());
    let none = browser.post(AUDIT, &[("caller", "nobody")]).await;
    let table = browser.get(&format!("{}/export?format=csv", none.path)).await;
    assert_eq!(table.text.lines().count(), 1, "the names of the columns");
    let lines = browser.get(&format!("{}/export?format=jsonl", none.path)).await;
    assert_eq!((lines.status, &*lines.text), (200, ""));
}

#[tokio::test]
async fn changes_are_followed_with_names_as_they_are_asked_for() {
    let (site, mut browser, mut client, ids) = with_changes().await;
    let still = browser.get(AUDIT).await;
    assert!(!still.text.contains("hx-sse"));
    let asked = browser.post(AUDIT, &[("reason", "join")]).await;
    let live = browser.get(&asked.attribute("href", &format!("{}?live=on", asked.path))).await;
    live.assert_has(&[">Pause</a>", ">Refresh</a>", "aria-live"]);
    let stream = live.attribute("data-hx-sse:connect", &format!("{}/stream?after=", asked.path));

    // What changes before the browser has the stream is on it.
    client
        .update(v1::User { user_id: ids[2].clone(), ..user("Zoë", Vec::new()) }, &["display_name"])
        .await
        .unwrap();
    let link = v1::LinkIdentityRequest {
        user_id: ids[2].clone(),
        identifier: Some(handle("zoe")),
        ..Default::default()
    };
    let mut link = tonic::Request::new(link);
    link.metadata_mut().insert("polynym-reason", "JOINED us".parse().unwrap());
    client.registry.link_identity(link).await.unwrap();
    let mut other = site.browser().await;
    other.steal(&browser);
    let request = Request::get(&*stream).body(Full::default()).unwrap();
    let response = other.open(request).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body();
    let mut text = String::new();
    while !text.contains("JOINED us") {
        let frame = body.frame().await.unwrap().unwrap().into_data().unwrap();
        text.push_str(&String::from_utf8_lossy(&frame));
    }
    assert!(
        text.contains(">Zoë</a>") && text.contains("</strong> linked an identity to"),
        "{text}"
    );
    assert!(!text.contains("</strong> changed"), "it was not asked for: {text}");
    let line = live_line(&browser.get(&asked.path).await);
    assert!(text.contains(&line), "the page knows the line again: {line}\n{text}");
}

/// What tells the first line from others.
fn live_line(page: &Answer) -> String {
    format!("data-event=\"{}\"", page.attribute("data-event", "").as_str())
}

#[tokio::test]
async fn the_changes_of_one_user_are_found_by_what_names_it() {
    let (_site, mut browser, mut client, ids) = with_changes().await;
    client.create(user("cleo Two", Vec::new())).await.unwrap();
    let kind = i32::from(v1::EventType::UserDisabled).to_string();
    let ann = browser.post(AUDIT, &[("user", "ann"), ("period", "Today")]).await;
    ann.assert_has(&["User: <bdi>ann</bdi>", "</strong> disabled <a", "polynym user history"]);
    ann.assert_has(&["<option value=\"anonymous\"></option>"]);
    assert_eq!((lines(&ann), chips(&ann).len()), (2, 2));
    assert!(!ann.path.contains("ann"), "{}", ann.path);
    for fields in [[("reason", "TICKET"), ("kind", "")], [("kind", &*kind), ("reason", "")]] {
        let own = [&[("user", &*ids[0])][..], &fields].concat();
        assert_eq!(lines(&browser.post(AUDIT, &own).await), 1, "{fields:?}");
        let other = [&[("user", &*ids[1])][..], &fields].concat();
        browser.post(AUDIT, &other).await.assert_has(&["No matching changes."]);
    }
    let file = browser.get(&format!("{}/export?format=csv", ann.path)).await;
    assert_eq!(file.text.lines().count(), 3, "{}", file.text);
    let all = browser.get(chips(&ann)[0]).await;
    assert_eq!((lines(&all), chips(&all).len()), (5, 1));

    let several = browser.post(AUDIT, &[("user", "cleo"), ("reason", "x")]).await;
    several.assert_has(&["Choose the user", "name=\"reason\" value=\"x\"", ">cleo Two</button>"]);
    several.assert_has(&[&format!("<button name=\"user\" value=\"{}\"", ids[2])]);
    let nobody = browser.post(AUDIT, &[("user", "@nobody"), ("caller", "anonymous")]).await;
    nobody.assert_has(&["No user matches this.", "value=\"anonymous\""]);
    assert_eq!(nobody.status, 422);
    client.delete(&ids[0]).await.unwrap();
    let deleted = browser.post(AUDIT, &[("user", "ann")]).await;
    deleted.assert_has(&["</strong> deleted <a"]);
    assert_eq!(lines(&deleted), 3, "also of deleted users");
}

/// Each call reads as many events as the lines before had.
#[tokio::test]
async fn a_page_of_many_operations_takes_few_calls() {
    let (_site, mut browser, mut client, _) = with_changes().await;
    for n in 0..12 {
        for m in 0..25 {
            let one = user(&format!("p {n} {m}"), Vec::new());
            let message = v1::CreateUserRequest { user: Some(one), ..Default::default() };
            let mut request = tonic::Request::new(message);
            let metadata = request.metadata_mut();
            metadata.insert("polynym-operation-id", format!("import-{n}").parse().unwrap());
            client.registry.create_user(request).await.unwrap();
        }
    }
    let page = browser.get(AUDIT).await;
    assert_eq!(lines(&page), 12 + 4);
    let (before, _) = page.text.split_once(" API calls").unwrap();
    let calls: u32 = before.rsplit('>').next().unwrap().parse().unwrap();
    assert!(calls <= 4, "{calls} calls");
}

#[tokio::test]
async fn a_resolver_neither_follows_nor_saves_the_audit() {
    let site = GuardedSite::start(&[("ana", "resolver", "*")]);
    let mut browser = site.browser("ana").await;
    for path in ["export?format=csv", "stream", "1/without/caller"] {
        assert_eq!(browser.get(&format!("{AUDIT}/{path}")).await.status, 403, "{path}");
    }
}

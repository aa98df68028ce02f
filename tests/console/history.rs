//! Histories of users, callers and operations, and undoing an operation.

use std::collections::BTreeSet;

use polynym_proto::v1;
use testkit::calls::{Client, email, handle, user};
use tonic::Request;

use crate::browser::{Browser, HOME, Site};
use crate::bulk::ended;
use crate::importing::{settled, upload};

/// A server with users of whom an operation changed three, and its pages.
async fn with_operation() -> (Site, Browser, Client, Vec<String>) {
    let site = Site::start(&[]);
    let mut client = Client::connect(&site.server.url).await;
    let mut ids = Vec::new();
    for name in ["ann", "bob", "cleo", "dora"] {
        let identities = vec![handle(name), email(&format!("{name}@example.com"))];
        ids.push(client.create(user(name, identities)).await.unwrap().user_id);
    }
    for id in &ids[..3] {
        let message = v1::DisableUserRequest { user_id: id.clone(), ..Default::default() };
        let mut request = Request::new(message);
        let metadata = request.metadata_mut();
        metadata.insert("polynym-operation-id", "leavers-7".parse().unwrap());
        metadata.insert("polynym-reason", "left the company".parse().unwrap());
        client.registry.disable_user(request).await.unwrap();
    }
    let browser = site.browser().await;
    (site, browser, client, ids)
}

#[tokio::test]
async fn a_history_has_changes_with_before_and_after() {
    let (_site, mut browser, mut client, ids) = with_operation().await;
    let ann = &ids[0];
    client.link(ann, handle("annie")).await.unwrap();
    client.verify(ann, handle("annie"), true, "a <letter>").await.unwrap();
    client.unlink(ann, handle("annie")).await.unwrap();
    let page = browser.get(&format!("{HOME}/users/{ann}")).await;
    let page = browser.get(&page.attribute("href", &format!("{HOME}/users/{ann}/history"))).await;
    page.assert_has(&[
        "History of ann",
        "<h3>identity linked</h3>",
        "annie (verified by a &#60;letter&#62;)",
        "<h3>disabled</h3>",
        "Reason: left the company",
        "leavers-7",
        "polynym user history",
    ]);
    assert!(!page.text.contains("<letter>"));
    let newest = page.text.find("identity unlinked</h3>").unwrap();
    assert!(newest < page.text.find("created</h3>").unwrap(), "the newest are first");

    let kind = i32::from(v1::EventType::UserDisabled);
    let some = browser.get(&format!("{HOME}/users/{ann}/history?kind={kind}")).await;
    some.assert_has(&["<h3>disabled</h3>"]);
    assert!(!some.text.contains("created</h3>"));
    let none = browser.get(&format!("{HOME}/users/{ann}/history?to=2001-01-01")).await;
    none.assert_has(&["No matching changes."]);
    let wrong = browser.get(&format!("{HOME}/users/{ann}/history?from=soon")).await;
    wrong.assert_has(&["From: not a time. Write 2026-01-31"]);
    assert_eq!(wrong.status, 422);
    let nobody = browser.get(&format!("{HOME}/users/{}x/history", &ann[..ann.len() - 1])).await;
    assert_eq!(nobody.status, 422);
}

#[tokio::test]
async fn a_history_has_pages_below_100_kilobytes() {
    let (_site, mut browser, mut client, ids) = with_operation().await;
    let id = &ids[3];
    for n in 0..30 {
        let mut changed = v1::User { user_id: id.clone(), ..Default::default() };
        let value = format!("{n} {}", "<&\"'".repeat(200));
        let paths: Vec<_> = (0..20).map(|a| format!("attributes.a{a}")).collect();
        for a in 0..20 {
            changed.attributes.insert(format!("a{a}"), testkit::calls::text(&value));
        }
        let mask: Vec<_> = paths.iter().map(String::as_str).collect();
        client.update(changed, &mask).await.unwrap();
    }
    let begin = format!("{HOME}/users/{id}/history");
    let (mut path, mut events) = (begin.clone(), 0);
    loop {
        let page = browser.get(&path).await;
        assert!(page.text.len() < 100_000, "{} bytes", page.text.len());
        events += page.text.matches("class=\"card change\"").count();
        if !page.text.contains("Earlier changes") {
            break;
        }
        path = page.attribute("href", &format!("{begin}?after=")).replace("&#38;", "&");
    }
    assert_eq!(events, 31);
    let first = browser.get(&begin).await;
    first.assert_has(&["Show all"]);
    let alone = first.attribute("href", &format!("{begin}?from="));
    let alone = browser.get(&alone.replace("&amp;", "&")).await;
    assert_eq!(alone.text.matches("class=\"card change\"").count(), 1);
    alone.assert_has(&["a0</th>", "a19</th>"]);
}

#[tokio::test]
async fn everything_a_caller_did_in_an_hour_is_found() {
    let (_site, mut browser, _client, ids) = with_operation().await;
    let page = browser.get(&format!("{HOME}/users/{}/history", ids[0])).await;
    let path = format!("{HOME}/audit");
    let hour = browser.submit(&page, &path, &[]).await;
    assert!(hour.path.starts_with(&format!("{path}/")), "{}", hour.path);
    assert!(!hour.path.contains("anonymous"), "{}", hour.path);
    hour.assert_has(&[
        "value=\"anonymous\"",
        "Changes searched for this page: 7",
        "polynym tenant events",
    ]);
    // Three users were disabled by one operation: one line.
    assert_eq!(hour.text.matches("<li data-event=").count(), 5);
    let others = browser.post(&path, &[("caller", "somebody")]).await;
    others.assert_has(&["No matching changes."]);
    let gone = browser.get(&format!("{path}/999")).await;
    assert_eq!(gone.status, 404);
}

#[tokio::test]
async fn an_operation_is_undone_after_a_preview() {
    let (_site, mut browser, mut client, ids) = with_operation().await;
    client.enable(&ids[1]).await.unwrap();
    let operation = format!("{HOME}/operations/leavers-7");
    let page = browser.get(&operation).await;
    page.assert_has(&["</strong> disabled", "polynym tenant events --tenant default --operation"]);
    assert_eq!(page.text.matches("<li data-event=").count(), 3);
    let preview = browser.get(&page.attribute("href", &format!("{operation}/undo"))).await;
    preview.assert_has(&[
        "Users read: 3. Would be reverted: 2. Cannot be reverted: 1.",
        "CHANGED_SINCE",
        "Changes by <strong dir=\"auto\">anonymous</strong> in no operation: 1 user",
    ]);
    preview.assert_has(&["polynym undo leavers-7 --tenant default --dry-run", "</html>"]);
    let state = |outcome: Result<v1::User, tonic::Status>| outcome.unwrap().state();
    assert_eq!(state(client.get(&ids[0]).await), v1::State::Disabled);

    let started = browser.submit(&preview, &format!("{operation}/undo"), &[]).await;
    assert!(started.path.starts_with(&format!("{HOME}/bulk/")), "{}", started.path);
    let undone = ended(&mut browser, &started.path).await;
    undone.assert_has(&[
        "undo the operation <a href=\"",
        "<dd>3 users</dd>",
        "<dt>Changed</dt><dd>2</dd>",
        "CHANGED_SINCE",
        "Changes by <strong dir=\"auto\">anonymous</strong> in no operation: 1 user",
    ]);
    undone.assert_has(&[&operation]);
    assert_eq!(state(client.get(&ids[0]).await), v1::State::Active);
    // The same form again starts nothing.
    let again = browser.submit(&preview, &format!("{operation}/undo"), &[]).await;
    assert_eq!(again.path, started.path);
    let bulks = browser.get(&format!("{HOME}/bulk")).await;
    bulks.assert_has(&["undo the operation <code>leavers-7</code>"]);
    let again = browser.get(&format!("{operation}/undo")).await;
    again.assert_has(&["Users read: 3. Would be reverted: 0."]);
    let nothing = browser.get(&format!("{HOME}/operations/nothing/undo")).await;
    nothing.assert_has(&["This operation has no changes left to undo."]);
}

/// The users of an operation have pages of fifty.
#[tokio::test]
async fn an_operation_has_a_list_of_its_users() {
    let site = Site::start(&[]);
    let mut browser = site.browser().await;
    let rows: String = (0..120).map(|n| format!("P {n},p{n}@example.com\n")).collect();
    let file = format!("name,email\n{rows}");
    let page = upload(&mut browser, "people.csv", file.as_bytes()).await;
    let page = browser.submit(&page, &format!("{}/dry-run", page.path), &[]).await;
    let page = settled(&mut browser, page).await;
    let page = browser.submit(&page, &format!("{}/run", page.path), &[]).await;
    let page = settled(&mut browser, page).await;
    page.assert_has(&["Users of this import"]);
    let operation = page.attribute("href", &format!("{HOME}/operations/import-"));
    let first = operation.trim_end_matches("/users").trim_end_matches("/undo").to_owned();
    let first = format!("{first}/users");
    let (mut path, mut ids, mut sizes) = (first.clone(), BTreeSet::new(), Vec::new());
    loop {
        let page = browser.get(&path).await;
        page.assert_has(&["What changed</th>", ">P "]);
        let links = page.text.split("<a data-row href=\"").skip(1);
        let own: Vec<_> = links.map(|link| link.split('"').next().unwrap().to_owned()).collect();
        sizes.push(own.len());
        ids.extend(own);
        if !page.text.contains("rel=\"next\"") {
            page.assert_has(&["rel=\"first\""]);
            break;
        }
        path = page.next_page();
    }
    assert_eq!((sizes, ids.len()), (vec![50, 50, 20], 120));
    let start = browser.get(&format!("{HOME}/audit")).await;
    assert_eq!(start.attribute("href", &first), first, "the audit leads to it");
    let none = browser.get(&format!("{HOME}/operations/nothing/users")).await;
    none.assert_has(&["No user whom this operation changed."]);
}

#[tokio::test]
async fn a_replaced_address_is_one_sentence() {
    let (_site, mut browser, mut client, ids) = with_operation().await;
    let request = v1::ReplaceIdentityRequest {
        user_id: ids[0].clone(),
        old_identifier: Some(email("ann@example.com")),
        new_identifier: Some(email("ann@example.org")),
        ..Default::default()
    };
    client.registry.replace_identity(request).await.unwrap();
    let page = browser.get(&format!("{HOME}/users/{}/history", ids[0])).await;
    page.assert_has(&["Replaced <bdi>ann@example.com</bdi> by <bdi>ann@example.org</bdi></p>"]);
    let (_, table) = page.text.split_once("Replaced <bdi>").unwrap();
    let table = table.split("</table>").next().unwrap();
    assert_eq!(table.matches("<tr>").count(), 2, "the header and one row: {table}");
    let audit = browser.get(&format!("{HOME}/audit")).await;
    audit.assert_has(&["<bdi>email:ann@example.com</bdi> (primary, not verified) → <bdi>email:"]);
}

fn named(id: &str, name: &str) -> v1::User {
    v1::User { user_id: id.to_owned(), display_name: name.to_owned(), ..Default::default() }
}

/// A merge is one line with both names, an operation is one with its number of users, and what
/// people typed is shown as text. Pages lead to older changes and back.
#[tokio::test]
async fn the_audit_has_a_line_for_each_change() {
    let (_site, mut browser, mut client, ids) = with_operation().await;
    client.enable(&ids[1]).await.unwrap();
    client.update(named(&ids[1], "<Bob>"), &["display_name"]).await.unwrap();
    client.merge(&ids[3], &ids[1]).await.unwrap();
    let page = browser.get(&format!("{HOME}/audit")).await;
    page.assert_has(&[
        "<h1>Audit</h1>",
        "&#60;Bob&#62;</a> into <a",
        "left the company",
        "aria-current",
    ]);
    assert!(!page.text.contains("<Bob>"));
    assert_eq!(page.text.matches("</strong> merged ").count(), 1, "one line for a merge");
    assert!(!page.text.contains(&format!("merged into {}", ids[3])), "an id in place of a name");
    let history = browser.get(&format!("{HOME}/users/{}/history", ids[1])).await;
    let cells = history.text.split("<td ").filter(|cell| cell.contains(">merged into "));
    let cells: Vec<_> = cells.map(|cell| cell.split("</td>").next().unwrap()).collect();
    let name = format!("<code class=\"quiet\">{}</code>", ids[3]);
    assert!(cells.len() == 1 && cells[0].contains(&name), "{cells:?}");
    assert!(cells[0].contains(">dora</a>"), "{cells:?}");
    let operation = page.text.lines().find(|line| line.contains("</strong> disabled ")).unwrap();
    assert_eq!(operation.matches("href=").count(), 3, "{operation}");
    page.assert_has(&[&format!("{HOME}/operations/leavers-7")]);

    for n in 0..60 {
        client.update(named(&ids[0], &format!("ann {n}")), &["display_name"]).await.unwrap();
    }
    let (mut path, mut lines) = (format!("{HOME}/audit"), 0);
    loop {
        let page = browser.get(&path).await;
        assert!(page.text.len() < 60_000, "{} bytes", page.text.len());
        lines += page.text.matches("<li data-event=").count();
        assert_eq!(page.text.contains(">Newest</a>"), path.contains("after="));
        if !page.text.contains(">Older</a>") {
            break;
        }
        path = page.attribute("href", &format!("{HOME}/audit?after=")).replace("&#38;", "&");
    }
    assert_eq!(lines, 60 + 3 + 1 + 4);
    let found = browser.post(&format!("{HOME}/audit"), &[("reason", "COMPANY")]).await;
    found.assert_has(&["</strong> disabled ", "value=\"COMPANY\"", "--reason COMPANY"]);
    assert!(!found.text.contains("</strong> created "));
}

/// What was just done in the console can be undone at once; not what somebody changed since, which
/// the page of the operation says.
#[tokio::test]
async fn a_change_is_undone_where_it_was_made() {
    let (_site, mut browser, mut client, ids) = with_operation().await;
    let path = format!("{HOME}/users/{}", ids[3]);
    let form = browser.get(&format!("{path}/name")).await;
    let done = browser.submit(&form, &format!("{path}/name"), &[("name", "Dora B")]).await;
    done.assert_has(&["The display name was changed.", "Dora B"]);
    let undone = browser.submit(&done, &format!("{path}/undo"), &[]).await;
    undone.assert_has(&["The change was undone."]);
    assert_eq!(client.get(&ids[3]).await.unwrap().display_name, "dora");
    // The change and its undoing are of one operation and one user: two lines with their values.
    let audit = browser.get(&format!("{HOME}/audit")).await;
    audit.assert_has(&["display name <bdi>dora</bdi> → <bdi>Dora B</bdi>"]);
    audit.assert_has(&["display name <bdi>Dora B</bdi> → <bdi>dora</bdi>"]);
    assert_eq!(audit.text.matches("</strong> undid a change of ").count(), 1);
    assert_eq!(audit.text.matches("</strong> changed ").count(), 1);

    let form = browser.get(&format!("{path}/disable")).await;
    let done = browser.submit(&form, &format!("{path}/disable"), &[("reason", "ticket 7")]).await;
    client.enable(&ids[3]).await.unwrap();
    let kept = browser.submit(&done, &format!("{path}/undo"), &[]).await;
    kept.assert_has(&["CHANGED_SINCE"]);
    assert!(kept.path.contains("/operations/console-"), "{}", kept.path);

    // A form without a request id is no operation: others without one would be undone with it.
    let bare = browser.post(&format!("{path}/name"), &[("name", "Dora C")]).await;
    bare.assert_has(&["The display name was changed."]);
    assert!(!bare.text.contains(&format!("{path}/undo")), "it offers to undo it");

    for operation in ["leavers-7", "console-", "console-x", ""] {
        let other = browser.post(&format!("{path}/undo"), &[("operation", operation)]).await;
        assert_eq!(other.status, 404, "{operation}");
    }
    assert_eq!(client.get(&ids[0]).await.unwrap().state(), v1::State::Disabled);
}

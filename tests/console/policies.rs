//! Policies: the review, conflicts, reserved handles and attributes.

use crate::browser::{Answer, Browser, Site};

const POLICIES: &str = "/console/t/default/policies";
const ATTRIBUTES: &str = "/console/t/default/policies/attributes";
const HANDLES: &str = "/console/t/default/policies/handles";
const REGIONS: &str = "/console/t/default/policies/regions";

/// The fields of the form as a browser sends them, with some changed.
pub fn fields(page: &Answer, changed: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut fields = page.hidden_fields(POLICIES);
    let (_, form) = page.text.split_once("<form class=\"policies\"").unwrap();
    let form = form.split("</form>").next().unwrap();
    let attribute = |tag: &str, name: &str| {
        let (_, rest) = tag.split_once(&format!(" {name}=\"")).unwrap_or_default();
        rest.split('"').next().unwrap_or_default().to_owned()
    };
    for tag in form.split('<').filter(|tag| tag.starts_with("input ") && !tag.contains("hidden")) {
        if !tag.contains("checkbox") || tag.contains(" checked") {
            fields.push((attribute(tag, "name"), attribute(tag, "value")));
        }
    }
    for select in form.split("<select ").skip(1) {
        let unit = select.split("selected>").nth(1).unwrap().split('<').next().unwrap();
        fields.push((attribute(&format!(" {select}"), "name"), unit.to_owned()));
    }
    for (name, value) in changed {
        fields.retain(|(known, _)| known != name);
        fields.push(((*name).to_owned(), (*value).to_owned()));
    }
    fields
}

async fn send(browser: &mut Browser, page: &Answer, changed: &[(&str, &str)]) -> Answer {
    let fields = fields(page, changed);
    let fields: Vec<_> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
    browser.post(POLICIES, &fields).await
}

#[tokio::test]
async fn policies_are_reviewed_before_they_are_saved() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let page = browser.get(POLICIES).await;
    assert_eq!(send(&mut browser, &page, &[]).await.path, POLICIES, "nothing to review");
    let changed = [
        ("history_retention", "48"),
        ("history_retention.unit", "hours"),
        ("holds.email", "7"),
        ("hide_unverified", "on"),
    ];
    let review = send(&mut browser, &page, &changed).await;
    review.assert_has(&[
        "Nothing is saved yet",
        "<td dir=\"auto\">400 days</td><td dir=\"auto\">2 days",
        "older than 2 days are hidden at once and removed for good",
        "<td dir=\"auto\">0 days</td><td dir=\"auto\">7 days",
        "polynym tenant set --tenant default --hold email=7d --hide-unverified on \
         --history-retention 2d",
    ]);
    let before = browser.get(POLICIES).await;
    before.assert_has(&["name=\"history_retention\" value=\"400\""]);
    let saved = browser.submit(&review, POLICIES, &[]).await;
    saved.assert_has(&["The policies are saved", "name=\"history_retention\" value=\"2\""]);
    let twice = browser.submit(&review, POLICIES, &[]).await;
    twice.assert_has(&["The policies are saved"]);
    let history = browser.get("/console/t/default/policies/history").await;
    history.assert_has(&["Policies changed", "anonymous", "UpdateTenant"]);
    assert_eq!(history.text.matches("Policies changed").count(), 1, "{}", history.text);
}

#[tokio::test]
async fn a_takeover_of_phones_is_set_and_said_where_one_is_linked() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let page = browser.get(POLICIES).await;
    page.assert_has(&["name=\"phone_takeover_after\" value=\"0\""]);
    let review = send(&mut browser, &page, &[("phone_takeover_after", "90")]).await;
    review.assert_has(&["Takeover of phone numbers", "0 days</td><td dir=\"auto\">90 days"]);
    let saved = browser.submit(&review, POLICIES, &[]).await;
    saved.assert_has(&["The policies are saved", "name=\"phone_takeover_after\" value=\"90\""]);

    let found = site.server.run(&["resolve", "--json", "handle:joe"]);
    let found: serde_json::Value = serde_json::from_slice(&found.stdout).unwrap();
    let id = found["user"]["userId"].as_str().unwrap();
    let link = browser.get(&format!("/console/t/default/users/{id}/link")).await;
    link.assert_has(&["90 days ago at the latest"]);
}

#[tokio::test]
async fn wrong_policies_are_kept_and_marked() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let page = browser.get(POLICIES).await;
    let changed = [("undo_window", "soon"), ("inbox_limit", "0"), ("holds.url", "3")];
    let wrong = send(&mut browser, &page, &changed).await;
    wrong.assert_has(&["value=\"soon\"", "Write a whole number, such as 30.", "value=\"3\""]);
    assert_eq!((wrong.status, wrong.text.matches("aria-invalid").count()), (422, 2));
    // The page begins at its errors, which lead to their fields.
    let links = ["undo_window", "inbox_limit"].map(|id| format!("<li><a href=\"#{id}\">"));
    wrong.assert_has(&["role=\"alert\" tabindex=\"-1\" autofocus", &links[0], &links[1]]);
    let long = send(&mut browser, &page, &[("undo_window", "999999"), ("holds.url", "3")]).await;
    long.assert_has(&["Nothing was saved", "value=\"999999\"", "undo_window-error"]);
    assert_eq!(long.status, 422);
}

#[tokio::test]
async fn another_change_is_shown_and_what_was_typed_applied_again() {
    let site = Site::with_sample();
    let (mut one, mut two) = (site.browser().await, site.browser().await);
    let seen = one.get(POLICIES).await;
    let page = two.get(POLICIES).await;
    let review = send(&mut two, &page, &[("undo_window", "3"), ("verified_wins", "on")]).await;
    two.submit(&review, POLICIES, &[]).await.assert_has(&["The policies are saved"]);

    let conflict = send(&mut one, &seen, &[("restore_window", "9")]).await;
    assert_eq!(conflict.status, 409);
    conflict.assert_has(&[
        "This tenant was changed in another tab, or by somebody else",
        "<td dir=\"auto\">7 days</td><td dir=\"auto\">3 days",
        "name=\"restore_window\" value=\"9\"",
        "name=\"undo_window\" value=\"3\"",
        "Apply again",
    ]);
    let review = send(&mut one, &conflict, &[]).await;
    review.assert_has(&["30 days</td><td dir=\"auto\">9 days"]);
    assert!(!review.text.contains("Undo window"), "the other change stays");
    let saved = one.submit(&review, POLICIES, &[]).await;
    saved.assert_has(&["name=\"restore_window\" value=\"9\"", "name=\"undo_window\" value=\"3\""]);
}

#[tokio::test]
async fn handles_are_reserved() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let page = browser.get(POLICIES).await;
    let own = [("list", "own"), ("handles", "boss\r\nchief, owner")];
    let saved = browser.submit(&page, HANDLES, &own).await;
    saved.assert_has(&["The policies are saved", "boss\nchief\nowner</textarea>"]);
    let stale = browser.submit(&page, HANDLES, &[("list", "own"), ("handles", "king")]).await;
    stale.assert_has(&[
        "This tenant was changed in another tab, or by somebody else",
        "boss, chief, owner",
        "king</textarea>",
    ]);
    assert_eq!(stale.status, 409);
    let long = "x".repeat(1_000);
    let wrong = browser.submit(&saved, HANDLES, &[("list", "own"), ("handles", &*long)]).await;
    wrong.assert_has(&["Nothing was saved", &format!("{long}</textarea>")]);
    assert_eq!(wrong.status, 422);
    let default = browser.submit(&saved, HANDLES, &[("list", "default")]).await;
    default.assert_has(&["value=\"default\" checked"]);
}

#[tokio::test]
async fn attributes_are_defined_and_their_definitions_removed() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let page = browser.get(ATTRIBUTES).await;
    page.assert_has(&[
        "No definitions",
        "team",
        "href=\"/console/t/default/policies/attributes?name=team#define\"",
    ]);
    let level = [
        ("name", "level"),
        ("type", "whole number"),
        ("indexed", "yes"),
        ("evidence", "yes"),
        ("find", "yes"),
    ];
    let defined = browser.submit(&page, ATTRIBUTES, &level).await;
    defined.assert_has(&[
        "<th scope=\"row\" dir=\"auto\">level</th>",
        "<td>whole number</td>",
        "<td>evidence</td>",
        "<td>finds users</td>",
    ]);
    let edit = browser.get(&format!("{ATTRIBUTES}?name=level")).await;
    edit.assert_has(&[
        "<option value=\"whole number\" selected>whole number</option>",
        "value=\"level\"",
    ]);
    edit.assert_has(&[
        "polynym attribute define level --tenant default --type int --evidence --find",
    ]);

    let stale = browser.submit(&page, ATTRIBUTES, &[("name", "born"), ("type", "time")]).await;
    stale.assert_has(&[
        "This tenant was changed in another tab, or by somebody else",
        "Attribute level",
        "value=\"born\"",
    ]);
    assert_eq!(stale.status, 409);
    let again = browser.submit(&stale, ATTRIBUTES, &[("name", "born"), ("type", "time")]).await;
    again.assert_has(&["<td>time</td>", "<td>whole number</td>"]);
    let long = "x".repeat(1_000);
    let wrong = browser.submit(&again, ATTRIBUTES, &[("name", &*long), ("type", "time")]).await;
    wrong.assert_has(&["Nothing was saved", &format!("value=\"{long}\"")]);
    assert_eq!(wrong.status, 422);

    let removed = browser.submit(&again, ATTRIBUTES, &[("name", "level"), ("remove", "yes")]).await;
    assert!(!removed.text.contains("<td>whole number</td>"), "{}", removed.text);
}

#[tokio::test]
async fn countries_of_phone_numbers_are_saved() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let page = browser.get(POLICIES).await;
    let saved = browser.submit(&page, REGIONS, &[("regions", "de, at")]).await;
    saved.assert_has(&["The policies are saved", "value=\"DE, AT\""]);
    let wrong = browser.submit(&saved, REGIONS, &[("regions", "DE, XX")]).await;
    wrong.assert_has(&["Nothing was saved", "value=\"DE, XX\"", "aria-invalid=\"true\""]);
    wrong.assert_has(&["autofocus", "<a href=\"#regions\" id=\"regions-error\">"]);
    assert_eq!(wrong.status, 422);
    let stale = browser.submit(&page, REGIONS, &[("regions", "CH")]).await;
    stale.assert_has(&[
        "This tenant was changed in another tab, or by somebody else",
        "value=\"CH\"",
    ]);
}

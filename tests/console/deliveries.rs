//! Deliveries.

use polynym_proto::v1;
use testkit::calls::{Client, handle, user};
use testkit::receiver::{Receiver, SECRET};
use testkit::scenarios::delivering::{ID, TO_THIS_MACHINE, get, until, update};

use crate::browser::Site;
use crate::commands::run_both;
use crate::tokens::GuardedSite;

const LIST: &str = "/console/t/default/deliveries";
const NEW: &str = "/console/t/default/deliveries/new";

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_created_changed_paused_and_deleted() {
    let site = Site::start(&[TO_THIS_MACHINE]);
    let mut client = Client::connect(&site.server.url).await;
    let mut browser = site.browser().await;
    let receiver = Receiver::start().await;
    let list = browser.get(LIST).await;
    list.assert_has(&["No deliveries.", NEW, "AdminService/ListDeliveries"]);
    run_both(&site, &list).await;

    let form = browser.get(NEW).await;
    assert_eq!(secret(&form.text).len(), "whsec_".len() + 44);
    let typed = [
        ("id", ID),
        ("url", &*receiver.url),
        ("secrets", SECRET),
        ("description", "for <bills>"),
        ("type", "user_created"),
    ];
    for _ in 0..2 {
        let created = browser.post(NEW, &typed).await;
        assert_eq!(created.path, format!("{LIST}/of/{ID}"));
        created.assert_has(&["The delivery was created", "for &#60;bills&#62;", "with values"]);
        assert!(!created.text.contains("whsec_"), "the secret is shown again");
    }
    client.create(user("ana", vec![handle("ana")])).await.unwrap();
    until(&mut client, |delivery| delivery.delivered == 1).await;
    assert!(receiver.got().iter().all(|message| message.secrets == [SECRET]));

    let path = format!("{LIST}/of/{ID}");
    let page = browser.get(&path).await;
    page.assert_has(&["Latest attempts", ">status 200<", "ListDeliveryAttempts"]);
    run_both(&site, &page).await;
    browser.get(LIST).await.assert_has(&[ID, ">active<"]);
    let tested = browser.submit(&page, &format!("{path}/test"), &[]).await;
    tested.assert_has(&["The receiver has taken a test message: status 200"]);
    let replayed =
        browser.submit(&page, &format!("{path}/replay"), &[("from", "2020-01-01")]).await;
    replayed.assert_has(&["Users whose events are sent again: 1"]);
    until(&mut client, |delivery| delivery.delivered == 2).await;

    let change = browser.get(&format!("{path}/change")).await;
    change.assert_has(&["value=\"user_created\" checked", "for &#60;bills&#62;"]);
    assert!(!change.text.contains("whsec_"), "a secret is shown");
    // Somebody else describes it while the form is open.
    let described =
        v1::UpdateDeliveryRequest { description: "others".into(), ..Default::default() };
    update(&mut client, described, &["description"]).await.unwrap();
    let typed = [("url", &*receiver.url), ("ids_only", "yes"), ("description", "for <bills>")];
    let changed = browser.submit(&change, &format!("{path}/change"), &typed).await;
    changed.assert_has(&["The delivery was changed.", "ids alone"]);
    let paused = browser.submit(&changed, &format!("{path}/pause"), &[]).await;
    paused.assert_has(&["The delivery is paused.", "Resume"]);
    let stored = get(&mut client).await;
    assert_eq!((stored.state(), stored.secret_count), (v1::DeliveryState::Paused, 1));
    assert!(stored.types.is_empty() && stored.ids_only && stored.description == "others");
    let resumed = browser.submit(&paused, &format!("{path}/resume"), &[]).await;
    resumed.assert_has(&["The delivery goes on."]);

    let asked = browser.get(&format!("{path}/delete")).await;
    asked.assert_has(&["It cannot be undone.", &receiver.url]);
    let deleted = browser.submit(&asked, &format!("{path}/delete"), &[]).await;
    assert_eq!(deleted.path, LIST);
    deleted.assert_has(&["No deliveries."]);
    assert_eq!(browser.get(&path).await.status, 404);
}

/// The secret that a form offers.
fn secret(text: &str) -> String {
    let from = text.find("whsec_").unwrap();
    let end = text[from..].find('<').unwrap();
    text[from..from + end].replace("&#43;", "+").replace("&#61;", "=")
}

#[tokio::test]
async fn what_is_wrong_is_said_beside_what_was_typed() {
    let site = Site::start(&[]);
    let mut browser = site.browser().await;
    let form = browser.get(NEW).await;
    let secret = secret(&form.text);
    let good = [("id", "crm"), ("url", "https://crm.example.com/"), ("secrets", &*secret)];
    let wrong = [
        ("id", "a b"),
        ("url", "http://crm.example.com/"),
        ("url", "https://10.1.1.1/"),
        ("url", "no url"),
        ("secrets", "whsec_c2hvcnQ="),
        ("secrets", ""),
    ];
    for (field, value) in wrong {
        let typed = good.map(|(name, good)| (name, if name == field { value } else { good }));
        let refused = browser.post(NEW, &typed).await;
        assert_eq!(refused.status, 422, "{field}: {value}");
        refused.assert_has(&["role=\"alert\"", "New delivery", "Create delivery"]);
    }
    let strange = [good[0], good[1], good[2], ("type", "user_exploded")];
    assert_eq!(browser.post(NEW, &strange).await.status, 422);
    browser.post(NEW, &good).await.assert_has(&["The delivery was created"]);
    let taken = [good[0], ("url", "https://other.example.com/"), good[2]];
    let taken = browser.post(NEW, &taken).await;
    assert_eq!(taken.status, 422);
    taken.assert_has(&["role=\"alert\"", "https://other.example.com/"]);
    for fields in [&[][..], &[("from", "soon")], &[("event", "x")]] {
        let answer = browser.post(&format!("{LIST}/of/crm/replay"), fields).await;
        assert_eq!(answer.status, 422, "{fields:?}");
    }
    // An address says nothing of what was done.
    let said = browser.get(&format!("{LIST}/of/crm?done=not-taken&result=CALL_0800_666_NOW")).await;
    assert!(
        !said.text.contains("CALL_0800") && !said.text.contains("class=\"toast"),
        "{}",
        said.text
    );
    // Each wrong field is named at once, and marked.
    let both = browser.post(NEW, &[("id", "a b"), ("url", "no url"), good[2]]).await;
    both.assert_has(&[
        "<a href=\"#id\">Name: up to 64",
        "<a href=\"#url\">Address of the receiver",
    ]);
    assert_eq!(both.text.matches("aria-invalid=\"true\"").count(), 2, "{}", both.text);
}

#[tokio::test]
async fn deliveries_are_for_admins() {
    let site = GuardedSite::start(&[("rita", "registrar", "*")]);
    let mut browser = site.browser("rita").await;
    assert!(!browser.get("/console/t/default/").await.text.contains(LIST));
    for path in [LIST, NEW, &format!("{LIST}/of/x"), &format!("{LIST}/of/x/change")] {
        assert_eq!(browser.get(path).await.status, 403, "{path}");
    }
    for path in [
        "new",
        "of/x/change",
        "of/x/pause",
        "of/x/resume",
        "of/x/test",
        "of/x/replay",
        "of/x/delete",
    ] {
        assert_eq!(browser.post(&format!("{LIST}/{path}"), &[]).await.status, 403, "{path}");
    }
}

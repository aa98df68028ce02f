//! Messages about what was done: a page says one once, and no link makes one.

use uuid::Uuid;

use crate::browser::{Answer, Browser, HOME, Site, path};

const TOAST: &str = "<dialog class=\"toast";

/// Renames the user at a path.
async fn rename(browser: &mut Browser, user: &str, name: &str) -> (Answer, Answer) {
    let form = browser.get(&format!("{user}/name")).await;
    let renamed = browser.submit(&form, &format!("{user}/name"), &[("name", name)]).await;
    (form, renamed)
}

#[tokio::test]
async fn a_message_is_said_once_and_its_undo_undoes_something() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let (joe, grace) = (path(&mut browser, "@joe").await, path(&mut browser, "@grace").await);
    let (form, renamed) = rename(&mut browser, &joe, "Joe One").await;
    assert_eq!(renamed.path, joe);
    renamed.assert_has(&[TOAST, "The display name was changed.", "<button>Undo</button>"]);
    let again = browser.get(&joe).await;
    assert!(!again.text.contains(TOAST), "{}", again.text);

    let undo = format!("{joe}/undo");
    browser.submit(&renamed, &undo, &[]).await.assert_has(&["The change was undone."]);
    assert!(!browser.get(&joe).await.text.contains("Joe One"));
    // The operation is undone: neither its form nor that of the change offers it again.
    let twice = browser.submit(&renamed, &undo, &[]).await;
    assert!(twice.path.contains("/operations/console-"), "{}", twice.path);
    let repeated = browser.submit(&form, &format!("{joe}/name"), &[("name", "Joe One")]).await;
    assert!(!repeated.text.contains("<button>Undo</button>"), "{}", repeated.text);
    let unknown = format!("console-{}", Uuid::new_v4());
    assert_eq!(browser.post(&undo, &[("operation", &unknown)]).await.status, 404);

    // Each of two tabs says what was done in it.
    let answers = [rename(&mut browser, &joe, "Joe Two").await.1, {
        rename(&mut browser, &grace, "Grace Two").await.1
    }];
    for (answer, user) in answers.iter().zip([&joe, &grace]) {
        assert_eq!(answer.path, *user);
        answer.assert_has(&[TOAST]);
    }
}

#[tokio::test]
async fn no_link_makes_a_message() {
    let site = Site::with_sample();
    let mut browser = site.browser().await;
    let (joe, grace) = (path(&mut browser, "@joe").await, path(&mut browser, "@grace").await);
    let other = grace.rsplit('/').next().unwrap();
    let operation = format!("console-{}", Uuid::new_v4());
    let done = ["renamed", "disabled", "deleted", "undone", "purged"];
    let lies = done.map(|done| format!("{joe}?done={done}&operation={operation}"));
    let merges = ["merged", "unmerged"].map(|name| format!("{joe}?{name}={other}"));
    let policies = ["saved", "created"].map(|done| format!("{HOME}/policies?done={done}"));
    let inbox = ["sent", "read"].map(|done| format!("{joe}/inbox?done={done}"));
    for link in lies.iter().chain(&merges).chain(&policies).chain(&inbox) {
        let page = browser.get(link).await;
        assert_eq!(page.status, 200, "{link}");
        assert!(!page.text.contains(TOAST), "{link}: {}", page.text);
    }
    let missing = format!("{HOME}/users/00000000-0000-7000-8000-000000000000?done=purged");
    assert!(!browser.get(&missing).await.text.contains("The user was purged"));
}

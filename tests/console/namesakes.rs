//! The users who have the name of a user that was just created or renamed.

use testkit::calls::{Client, email, user};

use crate::browser::{HOME, Site};

const HINT: &str = "Another user has this name. The same person?";

#[tokio::test]
async fn a_new_user_of_a_known_name_can_be_compared_once() {
    let site = Site::start(&[]);
    let mut client = Client::connect(&site.server.url).await;
    let maria = user("María Müller", vec![email("maria@example.com")]);
    let maria = client.create(maria).await.unwrap().user_id;
    client.create(user("Maria Anna Müller", Vec::new())).await.unwrap();
    let gone = client.create(user("Maria Muller", Vec::new())).await.unwrap().user_id;
    client.delete(&gone).await.unwrap();

    let mut browser = site.browser().await;
    let path = format!("{HOME}/users/new");
    let form = browser.get(&path).await;
    let created = browser.submit(&form, &path, &[("name", "MULLER, Maria")]).await;
    created.assert_has(&["The user was created.", HINT, "maria@example.com", ">María Müller</a>"]);
    assert!(!created.text.contains("Anna") && !created.text.contains(&gone));
    let own = created.path.split('?').next().unwrap().to_owned();
    let id = own.rsplit('/').next().unwrap();
    let merge = browser.get(&format!("{HOME}/users/{maria}/merge/{id}")).await;
    merge.assert_has(&["Merge two users", "Side by side"]);
    created.assert_has(&[&merge.path]);
    assert!(!browser.get(&own).await.text.contains(HINT), "the user is opened later");

    let form = browser.get(&format!("{own}/name")).await;
    let renamed = browser.submit(&form, &format!("{own}/name"), &[("name", "Mia \"*\"")]).await;
    renamed.assert_has(&["The display name was changed."]);
    assert!(!renamed.text.contains(HINT));
    let form = browser.get(&format!("{own}/name")).await;
    let name = [("name", "Maria Anna Mueller")];
    let renamed = browser.submit(&form, &format!("{own}/name"), &name).await;
    assert!(!renamed.text.contains(HINT), "ü is not ue here");
    let form = browser.get(&format!("{own}/name")).await;
    let name = [("name", "maria anna muller")];
    let renamed = browser.submit(&form, &format!("{own}/name"), &name).await;
    renamed.assert_has(&[HINT, ">Maria Anna Müller</a>"]);

    for name in ["", "🙂", &"word ".repeat(40), &format!("{}b", "a".repeat(250))] {
        for _ in 0..2 {
            let form = browser.get(&path).await;
            let created = browser.submit(&form, &path, &[("name", name)]).await;
            created.assert_has(&["The user was created."]);
        }
    }
}

#[tokio::test]
async fn of_many_users_of_a_name_a_few_are_shown() {
    let site = Site::start(&[]);
    let mut client = Client::connect(&site.server.url).await;
    for _ in 0..40 {
        client.create(user("Joe Smith", Vec::new())).await.unwrap();
    }
    let mut browser = site.browser().await;
    let path = format!("{HOME}/users/new");
    let form = browser.get(&path).await;
    let created = browser.submit(&form, &path, &[("name", "Joe Smith")]).await;
    created.assert_has(&["Other users have this name. Is one of them the same person?"]);
    assert_eq!(created.text.matches("Compare and merge").count(), 3);
}

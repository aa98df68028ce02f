//! Accounts at other providers: issuers and display names.

use polynym_proto::v1;
use tonic::{Code, Status};

use super::{fresh, user};
use crate::support::calls::{Client, handle, social};
use crate::support::status::{StatusDetails, status_details};

const ISSUER: &str = "https://accounts.google.com";

async fn link(
    client: &mut Client,
    id: &str,
    identifier: v1::Identifier,
    display: &str,
) -> Result<v1::User, Status> {
    let (user_id, identifier) = (id.to_owned(), Some(identifier));
    let request = v1::LinkIdentityRequest {
        user_id,
        identifier,
        display: display.to_owned(),
        ..Default::default()
    };
    Ok(client.registry.link_identity(request).await?.into_inner().user.unwrap())
}

fn displays(user: &v1::User) -> Vec<&str> {
    user.identities.iter().map(|identity| identity.display.as_str()).collect()
}

#[tokio::test]
async fn an_account_is_identified_by_its_issuer() {
    let (_server, mut client) = fresh().await;
    let joe = client.create(user("Joe", vec![social(ISSUER, "42")])).await.unwrap();
    assert_eq!(joe.identities[0].identifier, Some(social(ISSUER, "42")));
    for spelling in [ISSUER, "https%3A%2F%2Faccounts.google.com"] {
        let found = client.resolve(social(spelling, "42")).await.unwrap();
        assert_eq!(found.user.as_ref(), Some(&joe));
        assert_eq!(found.identity.unwrap().identifier, Some(social(ISSUER, "42")));
    }
    for other in
        ["https://accounts.google.com/", "https://Accounts.google.com", "accounts.google.com"]
    {
        let missing = status_details(client.resolve(social(other, "42")).await.unwrap_err());
        assert_eq!(missing, StatusDetails::new(Code::NotFound, "IDENTITY_NOT_FOUND"), "{other}");
    }
    let unlinked = client.unlink(&joe.user_id, social(ISSUER, "42")).await.unwrap();
    assert!(unlinked.identities.is_empty());
}

#[tokio::test]
async fn an_account_shows_the_name_from_its_provider() {
    let (_server, mut client) = fresh().await;
    let mut new_user =
        user("Joe", vec![social("github", "1"), social("github", "2"), handle("Joe")]);
    for (identity, display) in new_user.identities.iter_mut().zip(["octocat", "", "ignored"]) {
        identity.display = display.to_owned();
    }

    let joe = client.create(new_user).await.unwrap();
    assert_eq!(displays(&joe), ["octocat", "2", "Joe"]);
    let joe = link(&mut client, &joe.user_id, social("github", "3"), "hubot").await.unwrap();
    assert_eq!(displays(&joe), ["octocat", "2", "Joe", "hubot"]);

    // The name has changed at the provider.
    let renamed = link(&mut client, &joe.user_id, social("github", "3"), "robot").await.unwrap();
    assert_eq!(displays(&renamed), ["octocat", "2", "Joe", "robot"]);
    assert_ne!(renamed.etag, joe.etag);

    let again = link(&mut client, &joe.user_id, social("github", "3"), "").await.unwrap();
    assert_eq!(again, renamed, "an omitted name is kept");
    assert_eq!(client.get(&joe.user_id).await.unwrap(), renamed);
}

#[tokio::test]
async fn an_invalid_display_name_is_refused() {
    let (_server, mut client) = fresh().await;
    let joe = client.create(user("Joe", vec![])).await.unwrap();
    let long = "x".repeat(257);
    for (identifier, display) in
        [(social("github", "1"), "a\nb"), (social("github", "1"), &long), (handle("joe"), "Joe")]
    {
        let refused =
            status_details(link(&mut client, &joe.user_id, identifier, display).await.unwrap_err());
        assert_eq!(
            (refused.code, refused.fields),
            (Code::InvalidArgument, vec!["display".to_owned()]),
            "{display}"
        );
    }
}

//! Creates a user, and finds it by another spelling of its name.

use polynym_client::v1::{CreateUserRequest, Identity, User};
use polynym_client::{Client, email};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The server of POLYNYM_SERVER, else http://127.0.0.1:7171.
    let client = Client::builder().connect().await?;
    let identity = Identity { identifier: Some(email("Joe@Example.com")), ..Default::default() };
    let user = User { identities: vec![identity], ..Default::default() };
    let request = CreateUserRequest { user: Some(user), ..Default::default() };
    client.registry().create_user(request).await?;
    let found = client.resolve(email("joe@example.com")).await?;
    println!("{}", found.user.unwrap_or_default().user_id);
    Ok(())
}

//! A service that signs users in by email: it resolves the email in Polynym, and creates a user for
//! an email that nobody owns. The client gives each call a deadline and retries it; a request id
//! makes the retry of a mutation safe. Look-ups of concurrent sign-ins share calls.
//!
//! Run `cargo run -- serve --sample`, then `cargo run --example sign_in_service`, then
//! `cargo run --example sign_in_client joe.smith@example.com`.

use std::error::Error;
use std::io;
use std::time::Duration;

use polynym_client::v1::{CreateUserRequest, Identity, User};
use polynym_client::{Client, Kind, email};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

const ADDRESS: &str = "127.0.0.1:7272";
const MAX_EMAIL_BYTES: u64 = 256;
const DEADLINE: Duration = Duration::from_millis(500);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let polynym = Client::builder().timeout(DEADLINE).connect_lazy()?;
    let listener = TcpListener::bind(ADDRESS).await?;
    println!("listening on {ADDRESS}");
    loop {
        let (connection, _) = listener.accept().await?;
        tokio::spawn(serve(connection, polynym.clone()));
    }
}

/// Reads an email from a line, and answers with a line.
async fn serve(mut connection: TcpStream, polynym: Client) -> io::Result<()> {
    let mut email = String::new();
    BufReader::new((&mut connection).take(MAX_EMAIL_BYTES)).read_line(&mut email).await?;
    let reply = match sign_in(&polynym, email.trim()).await {
        Ok(user) => format!("signed in: {} {}\n", user.user_id, user.display_name),
        Err(error) => format!("{:?}: {}\n", error.kind(), error.message()),
    };
    connection.write_all(reply.as_bytes()).await
}

/// Returns the user who owns the email, or a new one.
async fn sign_in(polynym: &Client, address: &str) -> Result<User, polynym_client::Error> {
    match polynym.resolve(email(address)).await {
        Ok(found) => Ok(found.user.unwrap_or_default()),
        Err(error) if error.kind() == Kind::NotFound => {
            let identity = Identity { identifier: Some(email(address)), ..Default::default() };
            let user = User { identities: vec![identity], ..Default::default() };
            let request = CreateUserRequest { user: Some(user), ..Default::default() };
            let created = polynym.registry().create_user(request).await?;
            Ok(created.user.unwrap_or_default())
        }
        Err(error) => Err(error),
    }
}

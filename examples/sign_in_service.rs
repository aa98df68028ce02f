//! A service that signs users in by email: it resolves the email in Polynym, and creates a user for
//! an email that nobody owns. Each call has a deadline, and a failed one is retried; a request id
//! makes the retry of a mutation safe.
//!
//! Run `cargo run --release -- serve --sample`, then `cargo run --example sign_in_service`, then
//! `cargo run --example sign_in_client joe.smith@example.com`.

use std::error::Error;
use std::io;
use std::time::Duration;

use polynym::client::directory_service_client::DirectoryServiceClient;
use polynym::client::registry_service_client::RegistryServiceClient;
use polynym::proto::v1::identifier::Kind;
use polynym::proto::v1::{CreateUserRequest, Identifier, Identity, ResolveIdentityRequest, User};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Response, Status};
use tonic_types::StatusExt;
use uuid::Uuid;

const POLYNYM: &str = "http://127.0.0.1:7171";
const ADDRESS: &str = "127.0.0.1:7272";
const MAX_EMAIL_BYTES: u64 = 256;
const DEADLINE: Duration = Duration::from_millis(500);
const MAX_ATTEMPTS: u32 = 3;
const BACKOFF: Duration = Duration::from_millis(100);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let polynym = Endpoint::from_static(POLYNYM).connect_lazy();
    let listener = TcpListener::bind(ADDRESS).await?;
    println!("listening on {ADDRESS}");
    loop {
        let (connection, _) = listener.accept().await?;
        tokio::spawn(serve(connection, polynym.clone()));
    }
}

/// Reads an email from a line, and answers with a line.
async fn serve(mut connection: TcpStream, polynym: Channel) -> io::Result<()> {
    let mut email = String::new();
    BufReader::new((&mut connection).take(MAX_EMAIL_BYTES)).read_line(&mut email).await?;
    let reply = match sign_in(&polynym, email.trim()).await {
        Ok(user) => format!("signed in: {} {}\n", user.user_id, user.display_name),
        Err(status) => format!("{:?}: {}\n", status.code(), status.message()),
    };
    connection.write_all(reply.as_bytes()).await
}

/// Returns the user who owns the email, or a new one.
async fn sign_in(polynym: &Channel, email: &str) -> Result<User, Status> {
    let identifier = Identifier { kind: Some(Kind::Email(email.to_owned())) };
    let request =
        ResolveIdentityRequest { identifier: Some(identifier.clone()), ..Default::default() };
    let directory = DirectoryServiceClient::new(polynym.clone());
    let resolved = with_retries(request, |request| {
        let mut directory = directory.clone();
        async move { directory.resolve_identity(request).await }
    });
    match resolved.await {
        Err(status) if status.code() == Code::NotFound => create(polynym, identifier).await,
        resolved => Ok(resolved?.user.unwrap_or_default()),
    }
}

/// Creates a user. All attempts have one request id: the user is created at most once.
async fn create(polynym: &Channel, identifier: Identifier) -> Result<User, Status> {
    let identity = Identity { identifier: Some(identifier), ..Default::default() };
    let request = CreateUserRequest {
        user: Some(User { identities: vec![identity], ..Default::default() }),
        request_id: Uuid::new_v4().to_string(),
        ..Default::default()
    };
    let registry = RegistryServiceClient::new(polynym.clone());
    let created = with_retries(request, |request| {
        let mut registry = registry.clone();
        async move { registry.create_user(request).await }
    });
    Ok(created.await?.user.unwrap_or_default())
}

/// Sends a request until it is answered, at most [`MAX_ATTEMPTS`] times.
async fn with_retries<M: Clone, A, F>(
    message: M,
    send: impl Fn(Request<M>) -> F,
) -> Result<A, Status>
where
    F: Future<Output = Result<Response<A>, Status>>,
{
    let mut attempt = 1;
    loop {
        let mut request = Request::new(message.clone());
        request.set_timeout(DEADLINE);
        match send(request).await {
            Err(status) if attempt < MAX_ATTEMPTS && is_retryable(&status) => {
                let advised = status.get_details_retry_info().and_then(|info| info.retry_delay);
                tokio::time::sleep(advised.unwrap_or(BACKOFF * attempt)).await;
                attempt += 1;
            }
            outcome => return outcome.map(Response::into_inner),
        }
    }
}

/// Returns true if the call may succeed later. With `Unknown` and `DeadlineExceeded` a mutation may
/// have happened.
fn is_retryable(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unavailable | Code::Unknown | Code::DeadlineExceeded | Code::ResourceExhausted
    )
}

//! A web service: `POST /sign-up?email=E&name=N` gets or creates a user, `GET /users/E` finds one.

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use polynym_client::v1::User;
use polynym_client::{Client, Error, Kind, email};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let router =
        Router::new().route("/sign-up", post(sign_up)).route("/users/{email}", get(look_up));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    Ok(axum::serve(listener, router.with_state(Client::builder().connect_lazy()?)).await?)
}

#[derive(Deserialize)]
struct SignUp {
    email: String,
    name: String,
}

#[derive(Serialize)]
struct Found {
    id: String,
    name: String,
}

type Answer = Result<(StatusCode, Json<Found>), (StatusCode, String)>;

async fn sign_up(State(client): State<Client>, Query(form): Query<SignUp>) -> Answer {
    let user = User { display_name: form.name, ..Default::default() };
    let found = client.get_or_create(email(form.email), user).await.map_err(failure)?;
    Ok(answer(if found.is_created { StatusCode::CREATED } else { StatusCode::OK }, found.user))
}

async fn look_up(State(client): State<Client>, Path(address): Path<String>) -> Answer {
    let found = client.resolve(email(address)).await.map_err(failure)?;
    Ok(answer(StatusCode::OK, found.user.unwrap_or_default()))
}

fn answer(status: StatusCode, user: User) -> (StatusCode, Json<Found>) {
    (status, Json(Found { id: user.user_id, name: user.display_name }))
}

fn failure(error: Error) -> (StatusCode, String) {
    let status = match error.kind() {
        Kind::InvalidArgument => StatusCode::BAD_REQUEST,
        Kind::NotFound => StatusCode::NOT_FOUND,
        Kind::AlreadyExists | Kind::FailedPrecondition => StatusCode::CONFLICT,
        Kind::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Kind::Unavailable | Kind::OutcomeUnknown => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, error.to_string())
}

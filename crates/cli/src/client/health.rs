//! `polynym health`.

use tokio::time::timeout;
use tonic::Status;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::Session;
use crate::config::{Flags, Server};
use crate::failure::Failure;
use crate::output;

pub const EXAMPLES: &str = "\
Examples:
  polynym health
  polynym health --server https://users.example.com:7171 --ca ca.pem --timeout 2s

Exit status: 0 the server is SERVING; 1 it is not, or cannot be reached.";

pub async fn run(flags: Flags<Server>) -> Result<(), Failure> {
    let limit = flags.load()?.caller.timeout;
    let session = Session::open(&flags).await?;
    let mut client = HealthClient::new(session.client().connection());
    let answer = timeout(limit, client.check(HealthCheckRequest::default())).await;
    let answer = answer.unwrap_or_else(|_| Err(Status::deadline_exceeded("no answer")));
    let answer = answer.map_err(|status| session.failure(status))?.into_inner();
    let status = answer.status().as_str_name();
    match session.json() {
        true => output::print_json(&serde_json::json!({ "status": status }))?,
        false => output::print(&format!("{status}\n"))?,
    }
    match answer.status() {
        ServingStatus::Serving => Ok(()),
        _ => Err(Failure::AlreadyReported),
    }
}

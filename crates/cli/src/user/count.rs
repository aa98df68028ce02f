//! `polynym user count`.

use clap::Args;
use prost_types::FieldMask;

use super::search::no_match;
use crate::client::Session;
use crate::config::{Client, Flags};
use crate::failure::Failure;
use crate::output;
use crate::text::filter_error::with_excerpt;
use polynym_proto::v1::SearchUsersRequest;

pub const COUNT: &str = "\
Examples:
  polynym user count
  polynym user count --filter 'state = DISABLED AND attributes.team = \"search\"'

Reads the matching users page by page: a count is not of one moment.";

/// The maximum users of one call.
const PAGE_SIZE: i32 = 200;

#[derive(Args)]
pub struct Count {
    /// The filter: conditions joined by AND, OR and NOT. Without it, all users count.
    #[arg(value_name = "FILTER", default_value = "")]
    filter: String,
    /// The same, as other commands take it.
    #[arg(long = "filter", value_name = "FILTER", conflicts_with = "filter")]
    named_filter: Option<String>,
    #[command(flatten)]
    settings: Flags<Client>,
}

pub async fn count(command: Count) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let mut request = SearchUsersRequest {
        tenant: session.tenant(),
        filter: command.named_filter.unwrap_or(command.filter),
        page_size: PAGE_SIZE,
        read_mask: Some(FieldMask { paths: vec!["user_id".to_owned()] }),
        ..SearchUsersRequest::default()
    };
    let (mut count, mut hint) = (0, String::new());
    loop {
        let message = request.clone();
        let outcome = session.directory().search_users(message).await;
        let outcome = outcome.map_err(|error| with_excerpt(error, &request.filter));
        let answer = session.answer(outcome)?;
        count += answer.users.len();
        hint = if hint.is_empty() { answer.hint } else { hint };
        if answer.next_page_token.is_empty() {
            break;
        }
        request.page_token = answer.next_page_token;
    }
    if count == 0 && !hint.is_empty() {
        eprintln!("{}", no_match(&hint));
    }
    if session.json() {
        return output::print_json(&serde_json::json!({ "count": count }));
    }
    output::print(&format!("{count}\n"))
}

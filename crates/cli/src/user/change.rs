//! The arguments and the answer that changes of a user share.

use clap::Args;

use crate::client::{Session, request_id};
use crate::config::{ChangeClient, Flags};
use crate::failure::Failure;
use crate::output;
use crate::text::user_table;
use polynym_proto::v1::{UpdateUserResponse, User};

/// The arguments of all commands that change a user.
#[derive(Args)]
pub struct Change {
    /// Change the user only if this is its etag.
    #[arg(long, default_value = "")]
    pub etag: String,
    /// A UUID that identifies this call, so that a retry takes effect at most once.
    #[arg(long, value_name = "UUID")]
    pub request_id: Option<String>,
    #[command(flatten)]
    pub settings: Flags<ChangeClient>,
}

impl Change {
    /// The given request id, or a new one.
    pub fn request_id(&self) -> String {
        request_id(self.request_id.as_deref())
    }

    /// The settings of a change of many users. Fails if an argument is of one user.
    pub fn of_many(&self) -> Result<&Flags<ChangeClient>, Failure> {
        if self.etag.is_empty() && self.request_id.is_none() {
            return Ok(&self.settings);
        }
        let message = "--etag and --request-id are of one user: leave them out";
        Err(Failure::Usage(message.to_owned()))
    }
}

/// Shows the answer to a change, which always has the user alone.
pub fn show(session: &Session, user: Option<User>) -> Result<(), Failure> {
    if session.json() {
        return output::print_message(&UpdateUserResponse { user });
    }
    user_table::print(&user.unwrap_or_default())
}

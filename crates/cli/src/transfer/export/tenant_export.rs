//! The export of a tenant, which continues after an interruption.

use std::time::Duration;

use tokio::time::sleep;
use tonic::Request;

use super::output_file::Output;
use crate::client::Session;
use crate::failure::Failure;
use crate::output::{self, write_failure};
use polynym_client::{Error, Kind};
use polynym_proto::v1::{ExportUsersRequest, ExportUsersResponse, ExportedUser};

/// Users in one message.
const USERS_PER_MESSAGE: i32 = 256;
/// The delay before the first attempt to continue. It doubles before each further one.
const FIRST_DELAY: Duration = Duration::from_secs(1);
/// The attempts to continue that may fail without a further user.
const MAX_ATTEMPTS: u32 = 5;

/// The summary of the exports of a command.
pub struct Exported {
    /// Whether each is as of one moment.
    pub is_exact: bool,
    /// The number of users that cannot be read.
    pub unreadable: usize,
    /// The number of interruptions.
    pub interruptions: usize,
}

impl Default for Exported {
    fn default() -> Self {
        Self { is_exact: true, unreadable: 0, interruptions: 0 }
    }
}

impl Exported {
    /// Adds another export.
    pub fn add(&mut self, other: Self) {
        self.is_exact &= other.is_exact;
        self.unreadable += other.unreadable;
        self.interruptions += other.interruptions;
    }
}

/// The export of a tenant.
pub struct TenantExport<'a> {
    session: &'a Session,
    output: &'a mut Output,
    tenant: String,
    outcome: Exported,
    /// The position after the last message.
    page_token: String,
    /// The id of the last user.
    last: String,
    has_begun: bool,
    has_tenant: bool,
    /// Whether what was written has a token after it. Servers of earlier versions give none.
    is_resumable: bool,
}

/// Why an attempt ended early.
enum Interruption {
    /// By the server or the connection.
    Call(Error),
    /// For good.
    Failure(Failure),
}

impl From<Failure> for Interruption {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl<'a> TenantExport<'a> {
    /// An export that has not begun.
    pub fn new(session: &'a Session, output: &'a mut Output, tenant: String) -> Self {
        let (outcome, page_token, last) = Default::default();
        let (has_begun, has_tenant, is_resumable) = (false, false, true);
        Self {
            session,
            output,
            tenant,
            outcome,
            page_token,
            last,
            has_begun,
            has_tenant,
            is_resumable,
        }
    }

    /// Exports the tenant. Continues if the server becomes unavailable once it has begun.
    pub async fn run(mut self) -> Result<Exported, Failure> {
        let mut attempts = 0;
        loop {
            let position = self.page_token.clone();
            let error = match self.attempt().await {
                Ok(()) => return Ok(self.outcome),
                Err(Interruption::Failure(failure)) => return Err(failure),
                Err(Interruption::Call(error)) => error,
            };
            attempts = if self.page_token == position { attempts + 1 } else { 1 };
            let is_resumable = self.has_begun && self.is_resumable;
            if error.kind() != Kind::Unavailable || !is_resumable || attempts > MAX_ATTEMPTS {
                return Err(self.session.failure(error));
            }
            self.outcome.interruptions += 1;
            let delay = FIRST_DELAY * (1 << (attempts - 1));
            let delay = delay.max(error.retry_after().unwrap_or_default());
            let users = self.output.users();
            eprintln!("interrupted after {users} users: continuing in {} s", delay.as_secs());
            sleep(delay).await;
        }
    }

    /// Exports what follows the position.
    async fn attempt(&mut self) -> Result<(), Interruption> {
        // Without a deadline: the time depends on the number of users.
        let request = Request::new(ExportUsersRequest {
            tenant: self.tenant.clone(),
            read_time: None,
            page_size: USERS_PER_MESSAGE,
            page_token: self.page_token.clone(),
        });
        let parts = self.session.admin().export_users(request).await;
        let mut parts = parts.map_err(Interruption::Call)?;
        while let Some(part) = parts.message().await.map_err(Interruption::Call)? {
            self.has_begun = true;
            self.write(part)?;
        }
        Ok(())
    }

    /// Writes a part.
    fn write(&mut self, part: ExportUsersResponse) -> Result<(), Failure> {
        if let Some(exact) = part.end.map(|end| end.exact).or(part.start.map(|start| start.exact)) {
            self.outcome.is_exact = exact;
        }
        output::warn_unreadable(&part.unreadable_user_ids);
        self.outcome.unreadable += part.unreadable_user_ids.len();
        if let Some(tenant) = &part.tenant_record
            && !std::mem::replace(&mut self.has_tenant, true)
        {
            let line = polynym_lines::tenant_object(tenant).map_err(write_failure)?;
            self.output.write_other(&line)?;
        }
        let has_content = part.user.is_some()
            || !part.users.is_empty()
            || part.ownerless_hold.is_some()
            || !part.unreadable_user_ids.is_empty();
        if let Some(hold) = &part.ownerless_hold {
            let line = polynym_lines::hold_object(hold).map_err(write_failure)?;
            self.output.write_other(&line)?;
        }
        // Older servers send one user per message.
        let one = ExportedUser { user: part.user, internals: part.internals };
        let mut exported = part.users;
        exported.insert(0, one);
        exported.retain(|one| one.user.is_some());
        self.write_users(&exported)?;
        self.is_resumable &= !has_content || !part.page_token.is_empty();
        if !part.page_token.is_empty() {
            self.page_token = part.page_token;
        }
        Ok(())
    }

    fn write_users(&mut self, exported: &[ExportedUser]) -> Result<(), Failure> {
        if !exported.is_empty() {
            self.output.begin(exported.iter().filter_map(|one| one.user.as_ref()))?;
        }
        for ExportedUser { user, internals } in exported {
            let Some(user) = user else { continue };
            if self.outcome.interruptions > 0 && user.user_id <= self.last {
                let message = "the export was interrupted, and the server that continued it is \
                    older and began again\n  what to do: run the same command again";
                return Err(Failure::Other(message.to_owned()));
            }
            let internals = internals.as_ref().map(polynym_lines::internals_object);
            self.output.write_user(user, internals.transpose().map_err(write_failure)?)?;
            self.last.clone_from(&user.user_id);
        }
        Ok(())
    }
}

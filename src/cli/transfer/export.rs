//! `polynym export`.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use serde::Serialize;
use tempfile::{NamedTempFile, TempPath};
use tonic::Request;

use super::arguments::Export;
use super::codec;
use super::user_json::UserLine;
use crate::cli::client::Session;
use crate::cli::failure::Failure;
use crate::cli::files;
use crate::proto::v1::{ExportUsersRequest, ExportedUser, ListTenantsRequest};

/// Tenants in one page.
const PAGE: i32 = 1_000;
/// Users in one message of an export.
const USERS: i32 = 256;
const BUFFER: usize = 256 << 10;

pub async fn run(command: Export) -> Result<(), Failure> {
    let session = Session::open(&command.settings).await?;
    let mut output = Output::new(&command)?;
    let tenants = match command.all_tenants {
        true => tenants(&session).await?,
        false => vec![session.tenant()],
    };
    let mut is_exact = true;
    for tenant in tenants {
        is_exact &= export(&session, &mut output, tenant).await?;
    }
    let users = output.finish()?;
    let moment = match is_exact {
        true => "each tenant as it was at one moment",
        false => "some as they were when they were read",
    };
    eprintln!("{users} users, {moment}");
    Ok(())
}

/// Where lines go. A file gets its name once it is whole.
struct Output {
    writer: BufWriter<Box<dyn Write>>,
    draft: Option<(TempPath, PathBuf)>,
    users: u64,
}

impl Output {
    fn new(command: &Export) -> Result<Self, Failure> {
        let (writer, draft): (Box<dyn Write>, _) = match &command.output {
            None => (Box::new(std::io::stdout()), None),
            Some(path) => {
                let fault = |error: std::io::Error| files::fault(path, error);
                // A device, a pipe or a link stays what it is.
                if fs::symlink_metadata(path).is_ok_and(|there| !there.is_file()) {
                    (Box::new(File::create(path).map_err(fault)?), None)
                } else {
                    let draft = NamedTempFile::new_in(files::folder(path)).map_err(fault)?;
                    let (file, draft) = draft.into_parts();
                    (Box::new(file), Some((draft, path.clone())))
                }
            }
        };
        Ok(Self { writer: BufWriter::with_capacity(BUFFER, writer), draft, users: 0 })
    }

    /// Writes what is left. Returns the number of users.
    fn finish(mut self) -> Result<u64, Failure> {
        self.writer.flush()?;
        if let Some((draft, path)) = self.draft {
            draft.persist(&path).map_err(|fault| files::fault(&path, fault.error))?;
        }
        Ok(self.users)
    }

    fn line(&mut self, line: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer(&mut self.writer, line)
            .map_err(|error| Failure::from(std::io::Error::from(error)))?;
        Ok(self.writer.write_all(b"\n")?)
    }
}

fn unwritten(error: String) -> Failure {
    Failure::Other(format!("cannot write JSON: {error}"))
}

async fn tenants(session: &Session) -> Result<Vec<String>, Failure> {
    let (mut names, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = ListTenantsRequest { tenant: String::new(), page_size: PAGE, page_token };
        let answer =
            session.answer(session.admin().list_tenants(session.request(request)).await)?;
        names.extend(answer.tenants.into_iter().map(|tenant| tenant.tenant));
        if answer.next_page_token.is_empty() {
            return Ok(names);
        }
        page_token = answer.next_page_token;
    }
}

/// Exports a tenant. Returns whether it is as it was at one moment.
async fn export(session: &Session, output: &mut Output, tenant: String) -> Result<bool, Failure> {
    // Has no deadline of its own: it takes as long as there are users.
    let request = Request::new(ExportUsersRequest { tenant, read_time: None, page_size: USERS });
    let mut parts = session.answer(session.admin().export_users(request).await)?;
    let mut is_exact = false;
    while let Some(part) = parts.message().await.map_err(|status| session.failed(status, None))? {
        if let Some(start) = &part.start {
            is_exact = start.exact;
        }
        if let Some(end) = &part.end {
            is_exact = end.exact;
        }
        if let Some(tenant) = &part.tenant_record {
            output.line(&codec::tenant_object(tenant).map_err(unwritten)?)?;
        }
        if let Some(hold) = &part.ownerless_hold {
            output.line(&codec::hold_object(hold).map_err(unwritten)?)?;
        }
        // A server that knows nothing of several users a message sends one.
        let one = ExportedUser { user: part.user, internals: part.internals };
        for ExportedUser { user, internals } in std::iter::once(one).chain(part.users) {
            let Some(user) = &user else { continue };
            let internals = internals.as_ref().map(codec::internals_object).transpose();
            output.line(&UserLine { user, internals: internals.map_err(unwritten)? })?;
            output.users += 1;
        }
    }

    Ok(is_exact)
}

//! `polynym export`.

use super::arguments::Export;
use crate::client::Session;
use crate::failure::Failure;
use crate::output;
use polynym_proto::v1::{ListTenantsRequest, SearchUsersRequest};

mod output_file;
mod tenant_export;

use output_file::{Form, Output};
use tenant_export::{Exported, TenantExport};

/// Tenants in one page.
const PAGE_SIZE: i32 = 1_000;
/// Users in one page of a search.
const USERS_PER_PAGE: i32 = 200;

pub async fn run(command: Export) -> Result<(), Failure> {
    let form = Form::new(&command)?;
    let session = Session::open(&command.settings).await?;
    let mut output = Output::new(&command, form)?;
    if let Some(filter) = command.filter {
        let unreadable = search(&session, &mut output, filter).await?;
        eprintln!("{} users, each as of the moment it was read", output.finish()?);
        return check_readable(unreadable);
    }
    let tenants = match command.all_tenants {
        true => tenants(&session).await?,
        false => vec![session.tenant()],
    };
    let mut all = Exported::default();
    for tenant in tenants {
        all.add(TenantExport::new(&session, &mut output, tenant).run().await?);
    }
    let users = output.finish()?;
    let consistency = match (all.interruptions, all.is_exact) {
        (0, true) => "each tenant as of one moment",
        (0, false) => "some as of the moment they were read",
        _ => "not as of one moment: the export was interrupted, and continued",
    };
    eprintln!("{users} users, {consistency}");
    check_readable(all.unreadable)
}

/// Fails after an export that lacks users.
fn check_readable(unreadable: usize) -> Result<(), Failure> {
    match unreadable {
        0 => Ok(()),
        count => Err(Failure::Other(format!(
            "the export is complete but for {count} users whose stored records cannot be read: ask \
             the server's operator to run `polynym store verify`"
        ))),
    }
}

async fn tenants(session: &Session) -> Result<Vec<String>, Failure> {
    let (mut names, mut page_token) = (Vec::new(), String::new());
    loop {
        let request =
            ListTenantsRequest { tenant: String::new(), page_size: PAGE_SIZE, page_token };
        let outcome = session.admin().list_tenants(request).await;
        let answer = session.answer(outcome)?;
        names.extend(answer.tenants.into_iter().map(|tenant| tenant.tenant));
        if answer.next_page_token.is_empty() {
            return Ok(names);
        }
        page_token = answer.next_page_token;
    }
}

/// Exports the users of a tenant that a filter matches. Returns the number of users that cannot be
/// read.
async fn search(session: &Session, output: &mut Output, filter: String) -> Result<usize, Failure> {
    let mut unreadable = 0;
    let mut request = SearchUsersRequest {
        tenant: session.tenant(),
        filter,
        page_size: USERS_PER_PAGE,
        ..SearchUsersRequest::default()
    };
    loop {
        let message = request.clone();
        let answer = session.answer(session.directory().search_users(message).await)?;
        if !answer.users.is_empty() {
            output.begin(answer.users.iter())?;
        }
        for user in &answer.users {
            output.write_user(user, None)?;
        }
        output::warn_unreadable(&answer.unreadable_user_ids);
        unreadable += answer.unreadable_user_ids.len();
        if answer.next_page_token.is_empty() {
            return Ok(unreadable);
        }
        request.page_token = answer.next_page_token;
    }
}

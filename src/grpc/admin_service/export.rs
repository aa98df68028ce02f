//! ExportUsers: a stream of a tenant and its users, read page by page as the caller receives them.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use tonic::Status;

use crate::grpc::raw_response::Exported as Message;
use crate::grpc::status::status;
use polynym_directory::encoded::encode::time_message;
use polynym_directory::encoded::exported_user::ExportedUser;
use polynym_directory::encoded::internals::hold_message;
use polynym_directory::encoded::tenant::tenant_message;
use polynym_directory::error::{Error, Invalid};
use polynym_directory::model::record::Hold;
use polynym_directory::model::tenant::Tenant;
use polynym_directory::service::Directory;
use polynym_directory::service::transfer::export::Export;
use polynym_proto::v1;
use v1::export_users_response::{End, Start};

/// The bytes of users after which a message is complete.
const FULL_MESSAGE_BYTES: usize = 256 << 10;

pub type Responses = Pin<Box<dyn Stream<Item = Result<Message, Status>> + Send>>;

/// Exports a tenant.
pub async fn export(
    directory: &Arc<Directory>,
    tenant: Tenant,
    request: &v1::ExportUsersRequest,
) -> Result<Responses, Status> {
    if request.read_time.is_some() {
        let message = "must be absent: only the present can be exported";
        return Err(status(Error::invalid(Invalid::Field, "read_time", message)));
    }
    let read_time = Some(time_message(directory.now().time));
    let (export, record) = directory.begin_export(tenant).await.map_err(status)?;
    let start = Message {
        // No store keeps a snapshot however long an export takes.
        start: Some(Start { exact: false, read_time }),
        ..Message::default()
    };
    let tenant_record = record.map(|record| Message {
        tenant_record: Some(tenant_message(&record)),
        ..Message::default()
    });

    let page_size = match request.page_size {
        0 => None,
        size => Some(usize::try_from(size).map_err(|_| {
            status(Error::invalid(Invalid::Field, "page_size", "must not be negative"))
        })?),
    };
    let pages = stream::try_unfold(Some(export), move |export| async move {
        let Some(mut export) = export else { return Ok(None) };
        let page = next_page(&mut export, page_size).await.map_err(status)?;
        let (messages, rest) = match page {
            Some(page) => (page, Some(export)),
            None => (vec![end_message(&export)], None),
        };
        Ok::<_, Status>(Some((stream::iter(messages.into_iter().map(Ok)), rest)))
    });
    let first = std::iter::once(start).chain(tenant_record).map(Ok);
    Ok(Box::pin(stream::iter(first).chain(pages.try_flatten())))
}

/// The next messages: users, then holds. None at the end.
async fn next_page(
    export: &mut Export,
    page_size: Option<usize>,
) -> Result<Option<Vec<Message>>, Error> {
    let Some(page) = export.page().await? else {
        let holds = export.holds().await?;
        let messages = || holds.iter().filter_map(hold_line).collect();
        return Ok((!holds.is_empty()).then(messages));
    };
    let (mut users, mut unreadable_user_ids) = (Vec::new(), Vec::new());
    for user in page {
        match user {
            Ok(user) => users.push(user),
            Err(id) => unreadable_user_ids.push(id.to_string()),
        }
    }
    let mut messages = match page_size {
        None => users.into_iter().map(user_line).collect(),
        Some(size) => user_messages(users, size),
    };
    if !unreadable_user_ids.is_empty() {
        messages.push(Message { unreadable_user_ids, ..Message::default() });
    }
    Ok(Some(messages))
}

fn end_message(export: &Export) -> Message {
    Message { end: Some(End { exact: export.is_exact() }), ..Message::default() }
}

fn hold_line(hold: &Hold) -> Option<Message> {
    let tenant = hold.key.parts().0.to_owned();
    let ownerless_hold = Some(v1::OwnerlessHold { tenant, hold: Some(hold_message(hold)?) });
    Some(Message { ownerless_hold, ..Message::default() })
}

fn user_line(exported: ExportedUser) -> Message {
    let ExportedUser { user, internals, .. } = exported;
    Message { user: user.into_bytes(), internals, ..Message::default() }
}

/// Messages of at most `size` users.
fn user_messages(page: Vec<ExportedUser>, size: usize) -> Vec<Message> {
    let mut messages = Vec::new();
    let (mut message, mut bytes) = (Message::default(), 0);
    for exported in page {
        bytes += exported.user.as_bytes().len() + exported.internals.len();
        message.users.push(exported.into());
        if message.users.len() >= size || bytes >= FULL_MESSAGE_BYTES {
            messages.push(std::mem::take(&mut message));
            bytes = 0;
        }
    }
    messages.extend(Some(message).filter(|message| !message.users.is_empty()));
    messages
}

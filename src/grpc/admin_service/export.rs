//! ExportUsers: a stream of a tenant and its users, read page by page as the caller receives them.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use locality_uuid::LocalityId;
use tonic::Status;

use crate::grpc::raw_response::Exported as Message;
use crate::grpc::status::status;
use polynym_directory::{
    Directory, Error, Export, ExportedUser, Hold, Invalid, Tenant, encoded::encode::time_message,
    encoded::internals::hold_message, service::transfer::export::position::ExportPosition,
    tenant_message,
};
use polynym_proto::v1;
use v1::export_users_response::{End, Start};

/// The bytes of users after which a message is complete.
const FULL_MESSAGE_BYTES: usize = 256 << 10;

pub type Responses = Pin<Box<dyn Stream<Item = Result<Message, Status>> + Send>>;

/// Exports a tenant, or continues an export.
pub async fn export(
    directory: &Arc<Directory>,
    tenant: Tenant,
    request: &v1::ExportUsersRequest,
) -> Result<Responses, Status> {
    if request.read_time.is_some() {
        let message = "must be absent: only the present can be exported";
        return Err(status(Error::invalid(Invalid::Field, "read_time", message)));
    }
    let page_size = usize::try_from(request.page_size)
        .map_err(|_| status(Error::invalid(Invalid::Field, "page_size", "must not be negative")))?;
    let read_time = Some(time_message(directory.now().time));
    let begun = directory.begin_export(tenant, &request.page_token).await;
    let (export, record) = begun.map_err(status)?;
    let start = Message {
        // No store keeps a snapshot however long an export takes.
        start: Some(Start { exact: false, read_time }),
        ..Message::default()
    };
    let tenant_record = record.filter(|_| !export.is_resumed()).map(|record| Message {
        tenant_record: Some(tenant_message(&record)),
        ..Message::default()
    });

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
async fn next_page(export: &mut Export, page_size: usize) -> Result<Option<Vec<Message>>, Error> {
    if let Some(page) = export.page().await? {
        return Ok(Some(user_messages(export, page, page_size)));
    }
    let holds = export.holds().await?;
    let messages = || holds.iter().filter_map(|hold| hold_message_of(export, hold)).collect();
    Ok((!holds.is_empty()).then(messages))
}

fn end_message(export: &Export) -> Message {
    Message { end: Some(End { exact: export.is_exact() }), ..Message::default() }
}

fn hold_message_of(export: &Export, hold: &Hold) -> Option<Message> {
    let tenant = hold.key.parts().0.to_owned();
    let ownerless_hold = Some(v1::OwnerlessHold { tenant, hold: Some(hold_message(hold)?) });
    let page_token = export.token(&ExportPosition::Holds(Some(hold.key.clone())));
    Some(Message { ownerless_hold, page_token, ..Message::default() })
}

/// Messages of at most `size` users, or with one user each if it is 0.
fn user_messages(
    export: &Export,
    page: Vec<Result<ExportedUser, LocalityId>>,
    size: usize,
) -> Vec<Message> {
    let (mut messages, count) = (Vec::new(), page.len());
    let (mut message, mut bytes) = (Message::default(), 0);
    for (n, user) in (1..).zip(page) {
        let id = match user {
            Ok(exported) => {
                let id = exported.id;
                bytes += exported.user.as_bytes().len() + exported.internals.len();
                match size {
                    0 => {
                        (message.user, message.internals) =
                            (exported.user.into_bytes(), exported.internals);
                    }
                    _ => message.users.push(exported.into()),
                }
                id
            }
            Err(id) => {
                message.unreadable_user_ids.push(id.to_string());
                id
            }
        };
        let is_full = !message.user.is_empty()
            || size > 0 && message.users.len() >= size
            || bytes >= FULL_MESSAGE_BYTES;
        // The token of this message comes after the users that cannot be read, too.
        if is_full || n == count {
            message.page_token = export.token(&ExportPosition::Users(Some(id)));
            messages.push(std::mem::take(&mut message));
            bytes = 0;
        }
    }
    messages
}

//! ExportUsers: a stream of a tenant and its users. It is read page by page as the caller takes
//! what was sent.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use tonic::Status;

use super::raw_response::Exported as Message;
use super::status::status;
use crate::directory::error::{Error, Invalid};
use crate::directory::model::tenant::Tenant;
use crate::directory::service::Directory;
use crate::proto::v1;
use crate::wire::encode::time_message;
use crate::wire::exported_user::ExportedUser;
use crate::wire::tenant::tenant_message;
use v1::export_users_response::Start;

/// The bytes of users after which a message has no further one.
const MESSAGE_BYTES: usize = 256 << 10;

pub type Responses = Pin<Box<dyn Stream<Item = Result<Message, Status>> + Send>>;

/// Exports a tenant.
pub async fn export(
    directory: &Arc<Directory>,
    tenant: Tenant,
    request: &v1::ExportUsersRequest,
) -> Result<Responses, Status> {
    if request.read_time.is_some() {
        let message = "only the present can be exported: leave it out";
        return Err(status(Error::invalid(Invalid::Field, "read_time", message)));
    }
    let read_time = Some(time_message(directory.now().time));
    let (export, record) = directory.begin_export(tenant).await.map_err(status)?;
    let start = Start { exact: export.is_exact(), read_time };
    let start = Message { start: Some(start), ..Message::default() };
    let tenant = record.map(|record| Message {
        tenant_record: Some(tenant_message(&record)),
        ..Message::default()
    });

    let page_size = match request.page_size {
        0 => None,
        size => Some(usize::try_from(size).map_err(|_| {
            status(Error::invalid(Invalid::Field, "page_size", "must not be negative"))
        })?),
    };
    let pages = stream::try_unfold(export, |mut export| async move {
        let page = export.page().await.map_err(status)?;
        Ok::<_, Status>((!page.is_empty()).then_some((page, export)))
    });
    let users = pages.map_ok(move |page| {
        let messages: Vec<_> = match page_size {
            None => page.into_iter().map(message_of_one).collect(),
            Some(size) => messages(page, size),
        };
        stream::iter(messages.into_iter().map(Ok))
    });
    let first = std::iter::once(start).chain(tenant).map(Ok);
    Ok(Box::pin(stream::iter(first).chain(users.try_flatten())))
}

fn message_of_one(exported: ExportedUser) -> Message {
    let ExportedUser { user, internals, .. } = exported;
    Message { user: user.into_bytes(), internals, ..Message::default() }
}

/// Messages of at most `size` users.
fn messages(page: Vec<ExportedUser>, size: usize) -> Vec<Message> {
    let mut messages = Vec::new();
    let (mut message, mut bytes) = (Message::default(), 0);
    for exported in page {
        bytes += exported.user.as_bytes().len() + exported.internals.len();
        message.users.push(exported.into());
        if message.users.len() >= size || bytes >= MESSAGE_BYTES {
            messages.push(std::mem::take(&mut message));
            bytes = 0;
        }
    }
    messages.extend(Some(message).filter(|message| !message.users.is_empty()));
    messages
}

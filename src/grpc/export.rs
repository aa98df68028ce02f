//! ExportUsers: a stream of a tenant and its users. It is read page by page as the caller takes
//! what was sent.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use tonic::Status;

use super::status::status;
use crate::directory::error::{Error, Invalid};
use crate::directory::model::record::Record;
use crate::directory::model::tenant::Tenant;
use crate::directory::service::Directory;
use crate::proto::v1;
use crate::wire::encode::{time_message, user_message};
use crate::wire::internals::internals_message;
use crate::wire::tenant::tenant_message;
use v1::ExportUsersResponse as Message;
use v1::export_users_response::Start;

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

    let pages = stream::try_unfold(export, |mut export| async move {
        let page = export.page().await.map_err(status)?;
        Ok::<_, Status>((!page.is_empty()).then_some((page, export)))
    });
    let users = pages.map_ok(|page| stream::iter(page.into_iter().map(|user| Ok(message(&user)))));
    let first = std::iter::once(start).chain(tenant).map(Ok);
    Ok(Box::pin(stream::iter(first).chain(users.try_flatten())))
}

fn message(record: &Record) -> Message {
    let internals = Some(internals_message(record));
    Message {
        user: Some(user_message(&record.user)),
        internals: internals.filter(|internals| *internals != v1::UserInternals::default()),
        ..Message::default()
    }
}

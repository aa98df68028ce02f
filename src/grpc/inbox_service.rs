//! InboxService: notices to users.

use std::sync::Arc;

use tonic::{Request, Response, Status};

use super::authorization::{permitted_tenant, with_caller};
use super::convert;
use super::directory_service::count_misses;
use super::raw_response::status_message;
use super::status::status;
use crate::access::Call;
use crate::directory::encoded::notice::entry_message;
use crate::directory::error::{Error, Invalid};
use crate::directory::service::Directory;
use crate::directory::service::context::RequestContext;
use crate::directory::service::inbox::list::NoticesRequest;
use crate::directory::service::inbox::send::SendRequest;
use crate::directory::service::lookup::read::UserRef;
use crate::proto::services::inbox_service_server::InboxService;
use crate::proto::v1;
use crate::transport::protocol;
use v1::notice_result::Result as Outcome;
use v1::recipient::Recipient;

pub struct InboxApi(pub Arc<Directory>);

impl InboxApi {
    fn context<'a>(
        &self,
        caller: &'a Call,
        method: &'static str,
        tenant: &str,
        request_id: &'a str,
    ) -> Result<RequestContext<'a>, Status> {
        let tenant = permitted_tenant(caller, tenant)?;
        Ok(self.0.context(tenant, &caller.name, method, request_id))
    }
}

#[tonic::async_trait]
impl InboxService for InboxApi {
    async fn send_notice(
        &self,
        request: Request<v1::SendNoticeRequest>,
    ) -> Result<Response<v1::SendNoticeResponse>, Status> {
        let (caller, request) = with_caller(request)?;
        let context = self.context(&caller, "SendNotice", &request.tenant, &request.request_id)?;
        caller.check_misses().map_err(protocol::misses_spent)?;
        let sent = self.0.send_notice(&context, send_request(&request).map_err(status)?).await;
        let sent = sent.map_err(status)?;
        count_misses(&caller, &sent.results);
        let results = sent.results.into_iter().map(|result| {
            let outcome = match result {
                Ok(user) => Outcome::UserId(user.to_string()),
                Err(error) => Outcome::Error(status_message(&status(error))),
            };
            v1::NoticeResult { result: Some(outcome) }
        });
        let (notice_id, results) = (sent.id.to_string(), results.collect());
        Ok(Response::new(v1::SendNoticeResponse { notice_id, results }))
    }

    async fn list_notices(
        &self,
        request: Request<v1::ListNoticesRequest>,
    ) -> Result<Response<v1::ListNoticesResponse>, Status> {
        let (caller, request) = with_caller(request)?;
        let context = self.context(&caller, "ListNotices", &request.tenant, "")?;
        let wanted = NoticesRequest {
            user_id: &request.user_id,
            unread_only: request.unread_only,
            page_size: request.page_size,
            page_token: &request.page_token,
        };
        let page = self.0.notices(&context, wanted).await.map_err(status)?;
        let notices = page.entries.into_iter().filter_map(entry_message).collect();
        let next_page_token = page.next_page_token;
        Ok(Response::new(v1::ListNoticesResponse { notices, next_page_token }))
    }

    async fn mark_read(
        &self,
        request: Request<v1::MarkReadRequest>,
    ) -> Result<Response<v1::MarkReadResponse>, Status> {
        let (caller, request) = with_caller(request)?;
        let context = self.context(&caller, "MarkRead", &request.tenant, "")?;
        let up_to = convert::optional_timestamp("up_to_time", request.up_to_time.as_ref());
        let (up_to, user) = (up_to.map_err(status)?, &request.user_id);
        let marked = self.0.mark_read(&context, user, &request.notice_ids, up_to).await;
        marked.map_err(status)?;
        Ok(Response::new(v1::MarkReadResponse {}))
    }

    async fn delete_notice(
        &self,
        request: Request<v1::DeleteNoticeRequest>,
    ) -> Result<Response<v1::DeleteNoticeResponse>, Status> {
        let (caller, request) = with_caller(request)?;
        let context = self.context(&caller, "DeleteNotice", &request.tenant, "")?;
        let deleted = self.0.delete_notice(&context, &request.user_id, &request.notice_id).await;
        deleted.map_err(status)?;
        Ok(Response::new(v1::DeleteNoticeResponse {}))
    }

    async fn count_unread(
        &self,
        request: Request<v1::CountUnreadRequest>,
    ) -> Result<Response<v1::CountUnreadResponse>, Status> {
        let (caller, request) = with_caller(request)?;
        let context = self.context(&caller, "CountUnread", &request.tenant, "")?;
        let unread = self.0.count_unread(&context, &request.user_id).await.map_err(status)?;
        Ok(Response::new(v1::CountUnreadResponse { unread: unread as i32 }))
    }
}

/// The request to send a notice.
fn send_request(request: &v1::SendNoticeRequest) -> Result<SendRequest<'_>, Error> {
    let missing = || Error::invalid(Invalid::Field, "notice", "is missing");
    let notice = request.notice.as_ref().ok_or_else(missing)?;
    let recipients = request.recipients.iter().enumerate().map(|(n, recipient)| {
        let field = format!("recipients[{n}]");
        let missing = || Error::invalid(Invalid::Field, field, "set user_id or identifier");
        Ok(match recipient.recipient.as_ref().ok_or_else(missing)? {
            Recipient::UserId(id) => UserRef::Id(id),
            Recipient::Identifier(identifier) => UserRef::Owner(convert::raw(Some(identifier))),
        })
    });
    let expire_time = notice.expire_time.as_ref();
    Ok(SendRequest {
        recipients: recipients.collect::<Result<_, Error>>()?,
        subject: &notice.subject,
        body: &notice.body,
        attributes: convert::attributes_of("notice.attributes", &notice.attributes)?,
        expire_time: convert::optional_timestamp("notice.expire_time", expire_time)?,
    })
}

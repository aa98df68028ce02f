//! InboxService: notices to users.

use prost::Message;

use super::api::{Api, count_misses};
use super::convert;
use super::raw_response::status_message;
use super::read_log::log_read;
use super::status::{Refusal, status};
use polynym_access::Call;
use polynym_directory::{
    Error, Invalid, NoticesRequest, SendRequest, UserRef, encoded::notice::entry_message,
};
use polynym_lines::raw_identifier;
use polynym_proto::v1;
use polynym_transport::protocol;
use v1::notice_result::Result as Outcome;
use v1::recipient::Recipient;

impl Api {
    pub async fn send_notice(
        &self,
        call: &Call,
        request: v1::SendNoticeRequest,
    ) -> Result<v1::SendNoticeResponse, Refusal> {
        let context = self.context(call, &request.tenant, &request.request_id)?;
        call.check_miss_limit().map_err(protocol::misses_limited)?;
        call.check_notice_limit().map_err(protocol::notices_limited)?;
        let notice = send_request(&request)?;
        let bytes = request.notice.as_ref().map_or(0, Message::encoded_len);
        // Before it is sent: a caller that leaves has written a part.
        call.record_notice(bytes, request.recipients.len());
        let sent = self.directory.send_notice(&context, notice).await?;
        count_misses(call, &sent.results);
        let results = sent.results.into_iter().map(|result| {
            let outcome = match result {
                Ok(user) => Outcome::UserId(user.to_string()),
                Err(error) => Outcome::Error(status_message(&status(error))),
            };
            v1::NoticeResult { result: Some(outcome) }
        });
        Ok(v1::SendNoticeResponse { notice_id: sent.id.to_string(), results: results.collect() })
    }

    pub async fn list_notices(
        &self,
        call: &Call,
        request: v1::ListNoticesRequest,
    ) -> Result<v1::ListNoticesResponse, Refusal> {
        let context = self.context(call, &request.tenant, "")?;
        let page_request = NoticesRequest {
            user_id: &request.user_id,
            unread_only: request.unread_only,
            page_size: request.page_size,
            page_token: &request.page_token,
        };
        let page = self.directory.notices(&context, page_request).await?;
        log_read(call, request.user_id.parse());
        let notices = page.entries.into_iter().filter_map(entry_message).collect();
        let next_page_token = page.next_page_token;
        Ok(v1::ListNoticesResponse { notices, next_page_token })
    }

    pub async fn mark_read(
        &self,
        call: &Call,
        request: v1::MarkReadRequest,
    ) -> Result<v1::MarkReadResponse, Refusal> {
        let context = self.context(call, &request.tenant, "")?;
        let up_to = convert::optional_timestamp("up_to_time", request.up_to_time.as_ref())?;
        self.directory.mark_read(&context, &request.user_id, &request.notice_ids, up_to).await?;
        Ok(v1::MarkReadResponse {})
    }

    pub async fn delete_notice(
        &self,
        call: &Call,
        request: v1::DeleteNoticeRequest,
    ) -> Result<v1::DeleteNoticeResponse, Refusal> {
        let context = self.context(call, &request.tenant, "")?;
        let deleted =
            self.directory.delete_notice(&context, &request.user_id, &request.notice_id).await;
        deleted?;
        Ok(v1::DeleteNoticeResponse {})
    }

    pub async fn count_unread(
        &self,
        call: &Call,
        request: v1::CountUnreadRequest,
    ) -> Result<v1::CountUnreadResponse, Refusal> {
        let context = self.context(call, &request.tenant, "")?;
        let unread = self.directory.count_unread(&context, &request.user_id).await?;
        log_read(call, request.user_id.parse());
        Ok(v1::CountUnreadResponse { unread: unread as i32 })
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
            Recipient::Identifier(identifier) => UserRef::Owner(raw_identifier(Some(identifier))),
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

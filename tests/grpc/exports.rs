//! Exports over gRPC.

use polynym_proto::v1::ExportUsersRequest;
use tonic::Code;

use super::{fresh, fresh_with_clock, user};
use crate::support::calls::handle;
use crate::support::scenarios::exports::{
    continue_after_each_token, exported, refuse_foreign_tokens,
};
use crate::support::status::{StatusDetails, status_details};

#[tokio::test]
async fn exports_continue_after_each_token() {
    let (_server, mut client) = fresh().await;
    continue_after_each_token(&mut client).await;
}

#[tokio::test]
async fn exports_refuse_foreign_tokens() {
    let (_server, mut client) = fresh().await;
    refuse_foreign_tokens(&mut client).await;
}

#[tokio::test]
async fn the_token_of_an_export_is_valid_for_a_day() {
    let (_folder, clock, mut client) = fresh_with_clock().await;
    client.create(user("Joe", vec![handle("joe")])).await.unwrap();
    let whole = exported(&mut client, ExportUsersRequest::default()).await.unwrap();
    let page_token = whole.into_iter().map(|part| part.page_token).max().unwrap();
    let request = ExportUsersRequest { page_token, ..Default::default() };
    const DAY: i64 = 24 * 60 * 60 * 1_000;
    clock.set_ahead(DAY - 60_000);
    exported(&mut client, request.clone()).await.unwrap();
    clock.set_ahead(DAY + 60_000);
    let expired = status_details(exported(&mut client, request).await.unwrap_err());
    let expected = StatusDetails::new(Code::InvalidArgument, "PAGE_TOKEN_INVALID");
    assert_eq!(expired, expected.field("page_token"));
}

//! The undoing of an operation as a bulk change needs the role of UndoOperation.

use polynym_proto::v1;
use tonic::Code;

use super::{Callers, call, connect};

#[tokio::test(flavor = "multi_thread")]
async fn only_an_admin_undoes_an_operation_in_bulk() {
    let callers = Callers::new();
    let [admin, registrar] =
        ["admin", "registrar"].map(|role| format!("Bearer {}", callers.create(role, role, "*")));
    let server = callers.serve(&[]);
    let channel = connect(&server).await;
    let start = async |token: &str, validate_only| {
        let undo = v1::bulk_action::Undo { operation_id: "leavers".to_owned() };
        let request = v1::StartBulkChangeRequest {
            bulk_id: format!("undo-{validate_only}"),
            action: Some(v1::BulkAction { action: Some(v1::bulk_action::Action::Undo(undo)) }),
            validate_only,
            ..Default::default()
        };
        let path = "/polynym.v1.RegistryService/StartBulkChange";
        call::<_, v1::StartBulkChangeResponse>(&channel, path, Some(token), request).await
    };
    for validate_only in [true, false] {
        let refused = start(&registrar, validate_only).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied, "{refused:?}");
        assert!(refused.message().contains("action.undo needs the role admin"), "{refused:?}");
        start(&admin, validate_only).await.unwrap();
    }
    let resume = async |token: &str| {
        let bulk_id = "undo-false".to_owned();
        let request = v1::ResumeBulkChangeRequest { bulk_id, ..Default::default() };
        let path = "/polynym.v1.RegistryService/ResumeBulkChange";
        call::<_, v1::ResumeBulkChangeResponse>(&channel, path, Some(token), request).await
    };
    assert_eq!(resume(&registrar).await.unwrap_err().code(), Code::PermissionDenied);
    assert_eq!(resume(&admin).await.unwrap().bulk_change.unwrap().caller, "admin");
}

//! UndoOperation: a stream of progress. A step that has begun is finished even if the caller
//! leaves.

use std::pin::Pin;

use futures_util::{Stream, stream};
use tonic::Status;

use crate::grpc::status::{reason, status};
use polynym_directory::service::transfer::undo::{Kept, Undo, UndoStep};
use polynym_proto::v1;
use polynym_transport::StreamPermit;
use polynym_transport::rich_status::internal;
use v1::UndoOperationResponse as Message;
use v1::undo_operation_response::Kept as KeptMessage;

pub type Responses = Pin<Box<dyn Stream<Item = Result<Message, Status>> + Send>>;

/// Undoes an operation step by step.
pub fn undo(undo: Undo, permit: Option<StreamPermit>) -> Responses {
    let state = (undo, Message::default());
    Box::pin(stream::try_unfold(state, move |(mut undo, progress)| {
        let permit = permit.clone();
        async move {
            let step = tokio::spawn(async move {
                let _permit = permit;
                let step = undo.next().await;
                (undo, step)
            });
            let (undo, step) = step.await.map_err(|_| internal())?;
            let message = step.map_err(status)?.map(|step| message(&progress, &step));
            Ok(message.map(|message| {
                let progress = Message { kept: Vec::new(), ..message.clone() };
                (message, (undo, progress))
            }))
        }
    }))
}

/// The progress after a step.
fn message(before: &Message, step: &UndoStep) -> Message {
    Message {
        users: before.users + step.users as i64,
        reverted: before.reverted + step.reverted as i64,
        kept: step
            .kept
            .iter()
            .map(|(user, kept)| {
                let (reason, message) = match kept {
                    Kept::ChangedSince => {
                        ("CHANGED_SINCE", "somebody changed the user since".to_owned())
                    }
                    Kept::NotKept => (
                        "VALUES_NOT_KEPT",
                        "the history does not have all that the user had before".to_owned(),
                    ),
                    Kept::Rejected(error) => (reason(error), error.to_string()),
                };
                KeptMessage { user_id: user.to_string(), reason: reason.to_owned(), message }
            })
            .collect(),
    }
}

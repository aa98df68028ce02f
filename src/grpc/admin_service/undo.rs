//! UndoOperation: a stream of progress. A step that has begun is finished even if the caller
//! leaves.

use std::pin::Pin;

use futures_util::{Stream, stream};
use locality_uuid::LocalityId;
use tonic::Status;

use crate::grpc::status::status;
use polynym_directory::{Blocker, Error, NotUndone, Undo, UndoStep};
use polynym_proto::v1;
use polynym_transport::StreamPermit;
use polynym_transport::rich_status::internal;
use v1::UndoOperationResponse as Message;
use v1::undo_operation_response::Kept;

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
        kept: step.kept.iter().map(kept).collect(),
    }
}

/// A user that stays as the operation left it.
fn kept((user, error): &(LocalityId, Error)) -> Kept {
    let (reason, message) = (error.reason().to_owned(), error.to_string());
    let blockers = match error {
        Error::NotUndone(NotUndone::ChangedSince(blockers)) => {
            blockers.iter().map(blocker).collect()
        }
        _ => Vec::new(),
    };
    Kept { user_id: user.to_string(), reason, message, blockers }
}

fn blocker(
    Blocker { operation_id, caller, method }: &Blocker,
) -> v1::undo_operation_response::Blocker {
    v1::undo_operation_response::Blocker {
        operation_id: operation_id.clone(),
        caller: caller.clone(),
        method: method.clone(),
    }
}

//! The messages of an import as they arrive.

use std::time::Duration;

use futures_util::{Stream, TryStreamExt};
use polynym_proto::v1::ImportUsersRequest as Line;
use polynym_transport::protocol::{lines_late, of_message};
use tokio::time::timeout;
use tonic::Status;

/// A stream of messages.
pub trait Messages: Stream<Item = Result<Line, Status>> + Unpin {}

impl<S: Stream<Item = Result<Line, Status>> + Unpin> Messages for S {}

/// The next message; none at the end.
pub async fn next_message(requests: &mut impl Messages) -> Result<Option<Line>, Status> {
    requests.try_next().await.map_err(of_message)
}

/// The next message that is not empty; none at the end.
///
/// # Errors
/// Those of the messages; [`lines_late`] if there were only empty ones for so long.
pub async fn next_line(
    requests: &mut impl Messages,
    max_empty: Duration,
) -> Result<Option<Line>, Status> {
    let line = async {
        loop {
            match next_message(requests).await? {
                Some(message) if message.options.is_none() && !has_content(&message) => {}
                next => return Ok(next),
            }
        }
    };
    timeout(max_empty, line).await.unwrap_or_else(|_| Err(lines_late()))
}

/// Whether a message is a line.
pub const fn has_content(message: &Line) -> bool {
    message.user.is_some()
        || message.internals.is_some()
        || message.tenant_record.is_some()
        || message.ownerless_hold.is_some()
}

/// Whether a line has one record, and internals only with a user.
pub fn is_one_record(message: &Line) -> bool {
    let records =
        [message.user.is_some(), message.tenant_record.is_some(), message.ownerless_hold.is_some()];
    let count = records.into_iter().filter(|is_there| *is_there).count();
    count == 1 && (message.internals.is_none() || message.user.is_some())
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt, stream};
    use polynym_proto::v1::User;
    use tonic::Code;

    use super::*;

    #[tokio::test]
    async fn empty_messages_keep_no_import_open() {
        let pause = Duration::from_millis(1);
        let empty = stream::repeat(Line::default()).then(|line| async move {
            tokio::time::sleep(pause).await;
            Ok(line)
        });
        let late = next_line(&mut Box::pin(empty), 5 * pause).await.unwrap_err();
        assert_eq!(late.code(), Code::DeadlineExceeded);
    }

    #[test]
    fn empty_messages_are_passed_over() {
        let line = Line { line: 7, user: Some(User::default()), ..Line::default() };
        let sent = [Line::default(), line.clone(), Line::default()];
        let mut sent = stream::iter(sent.map(Ok));
        let mut next = || next_line(&mut sent, Duration::MAX).now_or_never().unwrap().unwrap();
        assert_eq!((next(), next()), (Some(line), None));
    }
}

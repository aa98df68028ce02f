//! Fits the items of a batch into its answer. The answer stays within [`ANSWER_BYTES`], the default
//! limit of clients, for up to 8,000 items: beyond that, the errors of omitted items alone exceed
//! it.

use prost::Message;
use tonic::{Code, Status};

use crate::grpc::status::status;
use polynym_directory::{ANSWER_BYTES, Error, stores::MAX_FRAME_BYTES};
use polynym_transport::rich_status::limited;

/// The maximum size of the error of an omitted item.
const OMITTED_BYTES: usize = 256;

/// Fills an answer with items, in order. An item that does not fit becomes an error: to request it
/// again, or that it exceeds an answer by itself.
pub fn fill<T, R>(outcomes: Vec<Result<T, Error>>) -> Vec<R>
where
    R: Message + From<Result<T, Status>>,
{
    let mut room = Room::new(outcomes.len());
    let fitted = outcomes.into_iter().map(|outcome| {
        let is_error = outcome.is_err();
        let item = R::from(outcome.map_err(status));
        let size = item.encoded_len() + MAX_FRAME_BYTES;
        if room.take(size) || is_error {
            return item;
        }
        let error = if size > ANSWER_BYTES { user_too_large(size) } else { answer_full() };
        let omitted = R::from(Err(error));
        room.take(omitted.encoded_len() + MAX_FRAME_BYTES);
        omitted
    });
    fitted.collect()
}

/// The free bytes of an answer.
struct Room {
    free: usize,
    /// The bytes reserved for the errors of the remaining items.
    reserved: usize,
}

impl Room {
    fn new(items: usize) -> Self {
        let reserved = (items * OMITTED_BYTES).min(ANSWER_BYTES / 2);
        Self { free: ANSWER_BYTES - reserved, reserved }
    }

    /// Takes the bytes of the next item, if they fit.
    fn take(&mut self, bytes: usize) -> bool {
        let own = self.reserved.min(OMITTED_BYTES);
        let fits = bytes <= self.free + own;
        if fits {
            self.reserved -= own;
            self.free = self.free + own - bytes;
        }
        fits
    }
}

fn answer_full() -> Status {
    status(Error::AnswerFull { limit: ANSWER_BYTES })
}

fn user_too_large(size: usize) -> Status {
    let message = "this user alone exceeds the answer to a batch: get it by itself";
    limited(Code::ResourceExhausted, "USER_TOO_LARGE", message, ANSWER_BYTES, size)
}

#[cfg(test)]
mod tests {
    use tonic_types::StatusExt;

    use super::*;
    use polynym_proto::google::rpc;

    /// A text, or a status.
    #[derive(Clone, PartialEq, Message)]
    struct Item {
        #[prost(bytes = "vec", tag = "1")]
        found: Vec<u8>,
        #[prost(message, optional, tag = "2")]
        error: Option<rpc::Status>,
    }

    impl From<Result<Vec<u8>, Status>> for Item {
        fn from(outcome: Result<Vec<u8>, Status>) -> Self {
            match outcome {
                Ok(found) => Self { found, error: None },
                Err(status) => {
                    Self { found: Vec::new(), error: rpc::Status::decode(status.details()).ok() }
                }
            }
        }
    }

    /// Fills an answer with users of these sizes. Returns "there" or the reason of the error for
    /// each.
    fn filled(sizes: &[usize]) -> Vec<String> {
        let items: Vec<Item> = fill(sizes.iter().map(|size| Ok(vec![0; *size])).collect());
        let bytes: usize = items.iter().map(|item| item.encoded_len() + MAX_FRAME_BYTES).sum();
        assert!(bytes <= ANSWER_BYTES, "{bytes} bytes");
        let reason = |item: &Item| match &item.error {
            None => "there".to_owned(),
            Some(status) => {
                let bytes = status.encode_to_vec().into();
                let status = Status::with_details(Code::from(status.code), &status.message, bytes);
                status.get_details_error_info().map(|info| info.reason).unwrap_or_default()
            }
        };
        items.iter().map(reason).collect()
    }

    #[test]
    fn the_error_of_an_omitted_item_fits_its_reserved_bytes() {
        for status in [answer_full(), user_too_large(usize::MAX)] {
            assert!(Item::from(Err(status)).encoded_len() + MAX_FRAME_BYTES <= OMITTED_BYTES);
        }
    }

    #[test]
    fn an_item_that_never_fits_is_an_error_and_others_are_answered() {
        let (small, fat) = (100, ANSWER_BYTES + 1);
        assert_eq!(filled(&[fat, small, small]), ["USER_TOO_LARGE", "there", "there"]);
        assert_eq!(filled(&[small, fat, small]), ["there", "USER_TOO_LARGE", "there"]);
    }

    #[test]
    fn a_full_answer_stays_within_its_limit() {
        let half_a_mebi = 512 << 10;
        let answer = filled(&[half_a_mebi; 1_000]);
        assert_eq!(answer.iter().filter(|item| *item == "there").count(), 7);
        assert!(answer[7..].iter().all(|item| item == "ANSWER_TOO_LARGE"));
        filled(&vec![4_000; 8_000]);
        assert_eq!(filled(&[2 << 20, 3 << 20, 100]), ["there", "ANSWER_TOO_LARGE", "there"]);
    }

    #[test]
    fn errors_are_unchanged() {
        let outcomes = vec![Err::<Vec<u8>, _>(Error::UserNotFound), Ok(vec![0; 9])];
        let items: Vec<Item> = fill(outcomes);
        assert_eq!(items[0].error.as_ref().map(|status| status.code), Some(Code::NotFound as i32));
        assert_eq!(items[1].found.len(), 9);
    }
}

//! The items that fit into the answer to a batch. The answer stays within [`ANSWER_BYTES`], the
//! size that clients accept by default, for up to 8,000 items: beyond that, the errors of left-out
//! items alone are larger.

use prost::Message;
use tonic::{Code, Status};

use super::status::status;
use crate::directory::error::Error;
use crate::directory::stores::ANSWER_BYTES;
use crate::transport::rich_status::limited;

/// The largest size of an item that only reports that it was left out.
const LEFT_BYTES: usize = 256;
/// The largest size of an item's frame: its tag and its length.
const FRAME_BYTES: usize = 6;

/// The items of an answer, in order. Those that do not fit say so: that they are to be asked for
/// again, or, where one alone is larger than an answer, that it never fits.
pub fn fill<T, R>(outcomes: Vec<Result<T, Error>>) -> Vec<R>
where
    R: Message + From<Result<T, Status>>,
{
    let mut room = Room::new(outcomes.len());
    let mut item = |outcome: Result<T, Error>| {
        let is_error = outcome.is_err();
        let item = R::from(outcome.map_err(status));
        let size = item.encoded_len() + FRAME_BYTES;
        if room.take(size) || is_error {
            return item;
        }
        let left = R::from(Err(if size > ANSWER_BYTES { never(size) } else { later() }));
        room.take(left.encoded_len() + FRAME_BYTES);
        left
    };

    outcomes.into_iter().map(&mut item).collect()
}

/// The bytes of an answer that are not taken yet.
struct Room {
    free: usize,
    /// Unchanged for the items that are still to come, to say at least that they were left out.
    kept: usize,
}

impl Room {
    fn new(items: usize) -> Self {
        let kept = (items * LEFT_BYTES).min(ANSWER_BYTES / 2);
        Self { free: ANSWER_BYTES - kept, kept }
    }

    /// Takes the next item's bytes, if they are there.
    fn take(&mut self, bytes: usize) -> bool {
        let own = self.kept.min(LEFT_BYTES);
        let fits = bytes <= self.free + own;
        if fits {
            self.kept -= own;
            self.free = self.free + own - bytes;
        }
        fits
    }
}

fn later() -> Status {
    status(Error::AnswerFull { limit: ANSWER_BYTES })
}

fn never(size: usize) -> Status {
    let message = "this user alone is larger than the answer to a batch may be: get it by itself";
    limited(Code::ResourceExhausted, "USER_TOO_LARGE", message, ANSWER_BYTES, size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic_types::StatusExt;

    /// A found text, or the status in its place.
    #[derive(Clone, PartialEq, Message)]
    struct Item {
        #[prost(bytes = "vec", tag = "1")]
        found: Vec<u8>,
        #[prost(message, optional, tag = "2")]
        error: Option<tonic_types::Status>,
    }

    impl From<Result<Vec<u8>, Status>> for Item {
        fn from(outcome: Result<Vec<u8>, Status>) -> Self {
            match outcome {
                Ok(found) => Self { found, error: None },
                Err(status) => Self {
                    found: Vec::new(),
                    error: tonic_types::Status::decode(status.details()).ok(),
                },
            }
        }
    }

    /// Fills an answer with users of these sizes; for each, whether it is there, or the reason why
    /// not.
    fn filled(sizes: &[usize]) -> Vec<String> {
        let items: Vec<Item> = fill(sizes.iter().map(|size| Ok(vec![0; *size])).collect());
        let bytes: usize = items.iter().map(|item| item.encoded_len() + FRAME_BYTES).sum();
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
    fn what_says_that_it_is_left_takes_no_more_than_is_kept_for_it() {
        for status in [later(), never(usize::MAX)] {
            assert!(Item::from(Err(status)).encoded_len() + FRAME_BYTES <= LEFT_BYTES);
        }
    }

    #[test]
    fn an_item_that_never_fits_says_so_and_others_are_answered() {
        let (small, fat) = (100, ANSWER_BYTES + 1);
        assert_eq!(filled(&[fat, small, small]), ["USER_TOO_LARGE", "there", "there"]);
        assert_eq!(filled(&[small, fat, small]), ["there", "USER_TOO_LARGE", "there"]);
    }

    #[test]
    fn a_full_answer_is_no_larger_than_it_may_be() {
        let half_a_mebi = 512 << 10;
        let answer = filled(&[half_a_mebi; 1_000]);
        assert_eq!(answer.iter().filter(|item| *item == "there").count(), 7);
        assert!(answer[7..].iter().all(|item| item == "ANSWER_TOO_LARGE"));
        filled(&vec![4_000; 8_000]);
        assert_eq!(filled(&[2 << 20, 3 << 20, 100]), ["there", "ANSWER_TOO_LARGE", "there"]);
    }

    #[test]
    fn errors_stay_what_they_are() {
        let outcomes = vec![Err::<Vec<u8>, _>(Error::UserNotFound), Ok(vec![0; 9])];
        let items: Vec<Item> = fill(outcomes);
        assert_eq!(items[0].error.as_ref().map(|status| status.code), Some(Code::NotFound as i32));
        assert_eq!(items[1].found.len(), 9);
    }
}

//! The limit of the items of a batch, which is checked before the message is decoded.

use tonic::Status;

use super::status::status;
use polynym_directory::error::Error;
use polynym_directory::model::unknown;

/// The tag of a batch's items in both messages.
const ITEMS_TAG: u32 = 2;

/// Rejects a batch of too many items before decoding: an empty item has two bytes, and many times
/// that once decoded.
pub fn check_batch(path: &str, message: &[u8], limit: usize) -> Result<(), Status> {
    if !path.ends_with("/BatchResolveIdentities") && !path.ends_with("/BatchGetUsers") {
        return Ok(());
    }
    let count = unknown::fields(message).filter(|field| field.tag == ITEMS_TAG).count();
    if count > limit { Err(status(Error::BatchTooLarge { limit, count })) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use tonic_types::StatusExt;

    use super::check_batch;

    /// Counts items that cannot be decoded, too.
    #[test]
    fn items_are_counted_before_they_are_decoded() {
        let items = |count: usize| [0x12, 1, 0xff].repeat(count);
        let path = "/polynym.v1.DirectoryService/BatchResolveIdentities";
        assert!(check_batch(path, &items(1_000), 1_000).is_ok());
        let refused = check_batch(path, &items(300_000), 1_000).unwrap_err();
        assert_eq!(refused.get_details_error_info().unwrap().metadata["value"], "300000");
        assert!(check_batch("/polynym.v1.DirectoryService/GetUser", &items(1_001), 1_000).is_ok());
    }
}

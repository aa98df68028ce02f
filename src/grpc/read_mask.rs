//! Read masks: the fields of a user that a caller wants.

use bytes::Bytes;
use prost::Message;
use prost_types::FieldMask;

use crate::directory::error::{Error, Invalid};
use crate::proto::v1;
use crate::wire::encoded_user::EncodedUser;

/// The fields of `polynym.v1.User`.
const FIELDS: [&str; 12] = [
    "user_id",
    "tenant",
    "state",
    "display_name",
    "identities",
    "attributes",
    "create_time",
    "update_time",
    "delete_time",
    "purge_time",
    "etag",
    "merged_into",
];

/// The fields that are wanted: all, or some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadMask(Option<Vec<String>>);

impl ReadMask {
    /// Reads the mask of a request. Without one, or with `*`, everything is wanted.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a path that is no field of a user.
    pub fn parse(mask: Option<&FieldMask>) -> Result<Self, Error> {
        let Some(mask) = mask else { return Ok(Self(None)) };
        if let Some(n) = mask.paths.iter().position(|path| path != "*" && !is_field(path)) {
            let field = format!("read_mask.paths[{n}]");
            let message = format!("is one of {}, or *", FIELDS.join(", "));
            return Err(Error::invalid(Invalid::Field, field, message));
        }
        let is_all = mask.paths.iter().any(|path| path == "*");
        Ok(Self((!is_all).then(|| mask.paths.clone())))
    }

    /// Whether everything is wanted.
    pub const fn is_all(&self) -> bool {
        self.0.is_none()
    }

    /// Whether a field is wanted.
    pub fn has(&self, field: &str) -> bool {
        self.0.as_ref().is_none_or(|paths| paths.iter().any(|path| path == field))
    }

    /// A user as an answer has it.
    pub fn encode(&self, user: EncodedUser) -> Bytes {
        if self.is_all() {
            return user.into_bytes();
        }
        let bytes = user.into_bytes();
        // What the server has encoded can be decoded.
        let mut user = v1::User::decode(bytes).unwrap_or_default();
        self.apply(&mut user);
        user.encode_to_vec().into()
    }

    /// Clears the fields that are not wanted.
    pub fn apply(&self, user: &mut v1::User) {
        fn clear<T: Default>(mask: &ReadMask, name: &str, field: &mut T) {
            if !mask.has(name) {
                *field = T::default();
            }
        }
        clear(self, "user_id", &mut user.user_id);
        clear(self, "tenant", &mut user.tenant);
        clear(self, "state", &mut user.state);
        clear(self, "display_name", &mut user.display_name);
        clear(self, "identities", &mut user.identities);
        clear(self, "attributes", &mut user.attributes);
        clear(self, "create_time", &mut user.create_time);
        clear(self, "update_time", &mut user.update_time);
        clear(self, "delete_time", &mut user.delete_time);
        clear(self, "purge_time", &mut user.purge_time);
        clear(self, "etag", &mut user.etag);
        clear(self, "merged_into", &mut user.merged_into);
    }
}

fn is_field(path: &str) -> bool {
    FIELDS.contains(&path)
}

#[cfg(test)]
mod tests {
    use prost_reflect::DescriptorPool;

    use super::*;
    use crate::proto::DESCRIPTORS;

    fn parse(paths: &[&str]) -> Result<ReadMask, Error> {
        let paths = paths.iter().map(ToString::to_string).collect();
        ReadMask::parse(Some(&FieldMask { paths }))
    }

    #[test]
    fn the_fields_are_those_of_the_message() {
        let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
        let user = pool.get_message_by_name("polynym.v1.User").unwrap();
        let fields: Vec<_> = user.fields().map(|field| field.name().to_owned()).collect();
        assert_eq!(fields, FIELDS);
    }

    #[test]
    fn a_mask_clears_all_other_fields() {
        let user = v1::User {
            user_id: "id".to_owned(),
            display_name: "Joe".to_owned(),
            etag: "1".to_owned(),
            ..v1::User::default()
        };
        let masked = |paths: &[&str]| {
            let mut user = user.clone();
            parse(paths).unwrap().apply(&mut user);
            user
        };
        assert_eq!(masked(&["*"]), user);
        assert_eq!(masked(&[]), v1::User::default());
        let named = v1::User { display_name: "Joe".to_owned(), ..v1::User::default() };
        assert_eq!(masked(&["display_name", "attributes"]), named);
        assert!(ReadMask::parse(None).unwrap().is_all());
    }

    #[test]
    fn unknown_paths_are_refused() {
        for path in ["", "name", "identities.display", "displayName"] {
            let Err(Error::Invalid { field, .. }) = parse(&["user_id", path]) else {
                panic!("{path} was accepted")
            };
            assert_eq!(field, "read_mask.paths[1]");
        }
    }
}

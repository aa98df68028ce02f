//! Read masks: the fields of users that a read returns (AIP-157, AIP-161).

use bytes::Bytes;
use prost_types::FieldMask;

use polynym_directory::{EncodedUser, Error, Found, Invalid, UserById, View};

/// The fields of a user, by their numbers.
const FIELDS: [(&str, u32); 12] = [
    ("user_id", 1),
    ("tenant", 2),
    ("state", 3),
    ("display_name", 4),
    ("identities", 5),
    ("attributes", ATTRIBUTES),
    ("create_time", 7),
    ("update_time", 8),
    ("delete_time", 9),
    ("purge_time", 10),
    ("etag", 11),
    ("merged_into", 12),
];
const ATTRIBUTES: u32 = 6;

/// The fields of a user to return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadMask {
    All,
    /// One bit for the number of each field.
    Some(u32),
}

impl ReadMask {
    /// Parses a mask. An absent or empty one means all fields.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a path is not a field of a user.
    pub fn parse(mask: Option<&FieldMask>) -> Result<Self, Error> {
        let paths = mask.map_or(&[][..], |mask| &mask.paths);
        if paths.is_empty() || paths.iter().any(|path| path == "*") {
            return Ok(Self::All);
        }
        paths
            .iter()
            .enumerate()
            .try_fold(Self::Some(0), |mask, (n, path)| Ok(mask.with(field_number(n, path)?)))
    }

    const fn with(self, number: u32) -> Self {
        match self {
            Self::All => Self::All,
            Self::Some(bits) => Self::Some(bits | 1 << number),
        }
    }

    /// Whether the mask has the field with this number.
    const fn has(self, number: u32) -> bool {
        match self {
            Self::All => true,
            Self::Some(bits) => number < u32::BITS && bits & (1 << number) != 0,
        }
    }

    /// The part of users to read.
    pub const fn view(self) -> View {
        if self.has(ATTRIBUTES) { View::Full } else { View::Basic }
    }

    /// The user with only these fields.
    pub fn apply(self, user: EncodedUser) -> EncodedUser {
        match self {
            Self::All => user,
            Self::Some(_) => user.with_fields(|number| self.has(number)),
        }
    }

    /// The encoded user with only these fields.
    pub fn encode(self, user: EncodedUser) -> Bytes {
        self.apply(user).into_bytes()
    }

    /// A found user with only these fields.
    pub fn apply_to_found(self, found: Found) -> Found {
        Found { user: self.apply(found.user), ..found }
    }

    /// A read user with only these fields.
    pub fn apply_to_got(self, got: UserById) -> UserById {
        UserById { user: self.apply(got.user), ..got }
    }
}

fn field_number(n: usize, path: &str) -> Result<u32, Error> {
    let field = FIELDS.iter().find(|(name, _)| *name == path);
    field.map(|(_, number)| *number).ok_or_else(|| {
        let message = format!("must be one of {}, or *", FIELDS.map(|(name, _)| name).join(", "));
        Error::invalid(Invalid::Field, format!("read_mask.paths[{n}]"), message)
    })
}

#[cfg(test)]
mod tests {
    use prost_reflect::DescriptorPool;

    use super::*;
    use polynym_proto::DESCRIPTORS;

    fn mask(paths: &[&str]) -> Result<ReadMask, Error> {
        let paths = paths.iter().map(ToString::to_string).collect();
        ReadMask::parse(Some(&FieldMask { paths }))
    }

    #[test]
    fn the_table_has_the_fields_of_the_message() {
        let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
        let user = pool.get_message_by_name("polynym.v1.User").unwrap();
        let fields = user.fields().map(|field| (field.name().to_owned(), field.number()));
        assert!(fields.eq(FIELDS.map(|(name, number)| (name.to_owned(), number))));
    }

    #[test]
    fn attributes_are_read_only_if_the_mask_has_them() {
        assert_eq!(ReadMask::parse(None).unwrap().view(), View::Full);
        assert_eq!(mask(&[]).unwrap().view(), View::Full);
        assert_eq!(mask(&["user_id", "*"]).unwrap(), ReadMask::All);
        assert_eq!(mask(&["user_id", "attributes"]).unwrap().view(), View::Full);
        assert_eq!(mask(&["user_id", "identities"]).unwrap().view(), View::Basic);
        for path in ["identities.identifier", "attributes.plan", "userId", ""] {
            assert!(mask(&[path]).is_err(), "{path}");
        }
    }
}

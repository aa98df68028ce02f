//! A user encoded as in the API's answers. A write encodes it once; look-ups copy the bytes.

use bytes::Bytes;
use locality_uuid::LocalityId;
use prost::Message;

use crate::encoded::error::WireError;
use crate::encoded::{attributes, decode, encode, v1_tag};
use crate::model::unknown::{self, Field, Unknown};
use crate::model::user::{State, User};
use crate::timestamp::Timestamp;
use polynym_identifier::{IdentityKey, Kind};
use polynym_proto::v1;

/// An encoded `polynym.v1.User`.
#[derive(Clone, PartialEq, Eq)]
pub struct EncodedUser(Bytes);

/// The bytes of an encoded attribute in addition to its name and value, at most.
const MAX_ENTRY_OVERHEAD: usize = 12;

/// A user, found by one of its identities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The user.
    pub user: EncodedUser,
    /// The requested identity: an encoded `polynym.v1.Identity`.
    pub identity: Bytes,
}

impl Found {
    /// The user with the identity of `key`; none if it does not list that.
    pub fn new(user: EncodedUser, key: &IdentityKey) -> Option<Self> {
        let identity = user.identity(key)?;
        Some(Self { user, identity })
    }

    /// The identity as typed.
    pub(crate) fn display(&self) -> &str {
        let display = unknown::first(&self.identity, v1_tag::IDENTITY_DISPLAY);
        std::str::from_utf8(display).unwrap_or_default()
    }

    /// The time when the identity was linked.
    pub(crate) fn link_time(&self) -> Timestamp {
        let time = unknown::first(&self.identity, v1_tag::IDENTITY_LINK_TIME);
        decode::read_time(prost_types::Timestamp::decode(time).ok())
    }

    /// The time when the identity was imported, if it was.
    pub(crate) fn import_time(&self) -> Option<Timestamp> {
        let mut fields = unknown::fields(&self.identity);
        let field = fields.find(|field| field.tag == v1_tag::IDENTITY_IMPORT_TIME)?;
        Some(decode::read_time(prost_types::Timestamp::decode(field.bytes).ok()))
    }

    /// Whether the identity is verified.
    pub(crate) fn is_verified(&self) -> bool {
        unknown::fields(&self.identity).any(|field| field.tag == v1_tag::IDENTITY_VERIFY_TIME)
    }
}

impl EncodedUser {
    /// Encodes a user.
    pub fn from_user(user: &User) -> Self {
        Self(encode::encode_user(user).into())
    }

    /// Wraps the stored output of [`EncodedUser::from_user`].
    pub const fn from_stored(bytes: Bytes) -> Self {
        Self(bytes)
    }

    /// The encoded bytes.
    pub const fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// The encoded bytes, taken out.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// Inserts attributes, as names and encoded values, into an encoded user without attributes.
    pub fn with_attributes<'a>(
        bare: &[u8],
        attributes: impl Iterator<Item = (&'a str, &'a [u8])> + Clone,
    ) -> Self {
        let size = |(name, value): (&str, &[u8])| name.len() + value.len() + MAX_ENTRY_OVERHEAD;
        let first = unknown::fields(bare).take_while(|field| field.tag <= v1_tag::USER_ATTRIBUTES);
        let (before, after) = bare.split_at(first.map(|field| field.whole.len()).sum());
        let mut user = Vec::with_capacity(bare.len() + attributes.clone().map(size).sum::<usize>());
        user.extend_from_slice(before);
        for (name, value) in attributes {
            attributes::write_entry(name, value, &mut user);
        }
        user.extend_from_slice(after);
        Self(user.into())
    }

    /// The user without its attributes.
    pub fn without_attributes(self) -> Self {
        self.with_fields(|number| number != v1_tag::USER_ATTRIBUTES)
    }

    /// The user with only the fields whose numbers satisfy `is_wanted`.
    pub fn with_fields(self, is_wanted: impl Fn(u32) -> bool) -> Self {
        if unknown::fields(&self.0).all(|field| is_wanted(field.tag)) {
            return self;
        }
        let wanted = unknown::fields(&self.0).filter(|field| is_wanted(field.tag));
        Self(wanted.flat_map(|field| field.whole.iter().copied()).collect::<Vec<_>>().into())
    }

    /// The name of the user's tenant.
    pub fn tenant(&self) -> &[u8] {
        tenant(&self.0)
    }

    /// The number of identities.
    pub fn identity_count(&self) -> usize {
        unknown::messages(v1_tag::USER_IDENTITIES, &self.0).count()
    }

    /// Whether one of the identities is a phone number.
    pub fn has_phone(&self) -> bool {
        unknown::messages(v1_tag::USER_IDENTITIES, &self.0).any(|identity| {
            let identifier = unknown::first(identity, v1_tag::IDENTITY_IDENTIFIER);
            unknown::fields(identifier).any(|field| field.tag == kind_tag(Kind::Phone.as_str()))
        })
    }

    /// Decodes the user. The encoded form has no versions of rules: each identity gets
    /// [`Rules::UNNAMED`].
    ///
    /// [`Rules::UNNAMED`]: polynym_identifier::Rules::UNNAMED
    ///
    /// # Errors
    /// [`WireError`] if the bytes are not an output of [`EncodedUser::from_user`].
    pub fn decode(&self) -> Result<User, WireError> {
        let message =
            v1::User::decode(self.0.clone()).map_err(|error| WireError(error.to_string()))?;
        let mut user = decode::read_user(message)?;
        user.unknown = Unknown::after(v1_tag::USER_LAST, &self.0);
        let identities = unknown::messages(v1_tag::USER_IDENTITIES, &self.0);
        for (identity, message) in user.identities.iter_mut().zip(identities) {
            identity.unknown = Unknown::after(v1_tag::IDENTITY_LAST, message);
        }
        Ok(user)
    }

    /// The state of the user, without decoding the rest. Damaged bytes read as an active user: the
    /// write has checked them.
    pub fn state(&self) -> State {
        let field = unknown::fields(&self.0).find(|field| field.tag == v1_tag::USER_STATE);
        let state = field.and_then(|field| i32::try_from(field.number).ok()?.try_into().ok());
        match state.unwrap_or_default() {
            v1::State::Unspecified | v1::State::Active => State::Active,
            v1::State::Disabled => State::Disabled,
            v1::State::Deleted => State::Deleted {
                delete_time: self.time(v1_tag::USER_DELETE_TIME),
                purge_time: self.time(v1_tag::USER_PURGE_TIME),
            },
            v1::State::Merged => {
                self.merged_into().map_or(State::Active, |into| State::Merged { into })
            }
        }
    }

    /// The user's id.
    pub fn id(&self) -> Result<LocalityId, WireError> {
        let text = std::str::from_utf8(unknown::first(&self.0, v1_tag::USER_ID)).ok();
        text.and_then(|text| text.parse().ok())
            .ok_or_else(|| WireError("a user without an id".to_owned()))
    }

    /// Whether this is the user's id.
    pub(crate) fn has_id(&self, id: LocalityId) -> bool {
        self.id().is_ok_and(|own| own == id)
    }

    fn time(&self, tag: u32) -> Timestamp {
        decode::read_time(prost_types::Timestamp::decode(unknown::first(&self.0, tag)).ok())
    }

    fn merged_into(&self) -> Option<LocalityId> {
        std::str::from_utf8(unknown::first(&self.0, v1_tag::USER_MERGED_INTO)).ok()?.parse().ok()
    }

    /// The encoded identity of `key`.
    fn identity(&self, key: &IdentityKey) -> Option<Bytes> {
        let (tenant, kind, value) = key.parts();
        if self.tenant() != tenant.as_bytes() {
            return None;
        }
        let is_wanted = |field: &Field<'_>| {
            field.tag == v1_tag::USER_IDENTITIES && is_identity(field.bytes, kind, value)
        };
        unknown::fields(&self.0).find(is_wanted).map(|field| self.0.slice_ref(field.bytes))
    }
}

/// Shows only the length: a user is personal data.
impl std::fmt::Debug for EncodedUser {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EncodedUser({} bytes)", self.0.len())
    }
}

/// The name of an encoded user's tenant.
pub fn tenant(user: &[u8]) -> &[u8] {
    unknown::first(user, v1_tag::USER_TENANT)
}

/// The field number of an identifier of this kind.
fn kind_tag(kind: &str) -> u32 {
    match kind.parse() {
        Ok(Kind::Email) => 1,
        Ok(Kind::Handle) => 2,
        Ok(Kind::Phone) => 3,
        Ok(Kind::Social) => 4,
        Ok(Kind::Url) => 5,
        Err(_) => 0,
    }
}

/// Whether the provider of a key, where issuers are percent-encoded, is that of a user.
fn is_provider(encoded: &str, provider: &[u8]) -> bool {
    percent_encoding::percent_decode_str(encoded).eq(provider.iter().copied())
}

/// Whether an encoded identity has this identifier.
fn is_identity(identity: &[u8], kind: &str, value: &str) -> bool {
    let identifier = unknown::first(identity, v1_tag::IDENTITY_IDENTIFIER);
    let Some(field) = unknown::fields(identifier).find(|field| field.tag == kind_tag(kind)) else {
        return false;
    };

    match kind {
        "phone" => unknown::first(field.bytes, v1_tag::PHONE_NUMBER) == value.as_bytes(),
        "social" => value.split_once('/').is_some_and(|(provider, subject)| {
            is_provider(provider, unknown::first(field.bytes, v1_tag::SOCIAL_PROVIDER))
                && unknown::first(field.bytes, v1_tag::SOCIAL_SUBJECT) == subject.as_bytes()
        }),
        _ => field.bytes == value.as_bytes(),
    }
}

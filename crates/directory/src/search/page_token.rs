//! Page tokens: the position at which a search continues.

use std::ops::Bound;

use locality_uuid::LocalityId;
use prost::{Message, Oneof};
use xxhash_rust::xxh3::Xxh3;

use super::field::Field;
use super::lead::{AccessPath, Position};
use super::range::Range;
use super::scalar::Scalar;
use crate::error::Error;
use crate::model::tenant::Tenant;
use crate::timestamp::Timestamp;
use crate::tokens::key::TokenKey;
use crate::tokens::sealed::{SealedToken, TokenPayload, foreign_page_token};
use polynym_identifier::{Identifier, Kind};

/// The number of this kind of token, and the seed of the hash of a search.
pub(super) const KIND: u64 = 0x706f_6c79_6e79_6d01;

/// A position in a search.
#[derive(Clone, Debug, PartialEq)]
pub struct PageToken {
    /// The access path of the search.
    pub path: AccessPath,
    /// The position of the last user read.
    pub position: Position,
}

/// The hash of a search, which binds a token to it.
pub fn query_hash(tenant: &Tenant, filter: &str, order_by: &str) -> u64 {
    let mut hash = Xxh3::with_seed(KIND);
    for text in [tenant.as_str(), filter, order_by] {
        hash.update(&(text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    }
    hash.digest()
}

impl PageToken {
    /// The position as bytes, for a store.
    pub fn to_bytes(&self) -> Vec<u8> {
        TokenRecord::from(self).encode_to_vec()
    }

    /// Reads the output of [`PageToken::to_bytes`]; none from any other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        TokenRecord::decode(bytes).ok()?.try_into().ok()
    }

    /// Encodes a token that is issued at `now` for the search with this hash.
    pub fn encode(&self, key: &TokenKey, query: u64, now: Timestamp) -> String {
        SealedToken { query, issued: now, payload: TokenRecord::from(self) }.seal(key)
    }

    /// Decodes a token of the search with this hash.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is damaged, of another search, or older than a day.
    pub fn decode(key: &TokenKey, text: &str, query: u64, now: Timestamp) -> Result<Self, Error> {
        let record: Option<TokenRecord> = SealedToken::open_page(key, text, query, now)?;
        record.and_then(|record| record.try_into().ok()).ok_or_else(foreign_page_token)
    }
}

/// A record that no token has.
struct DamagedToken;

#[derive(Clone, PartialEq, Message)]
struct TokenRecord {
    #[prost(message, optional, tag = "3")]
    path: Option<PathRecord>,
    #[prost(message, optional, tag = "4")]
    value: Option<ScalarRecord>,
    #[prost(bytes = "vec", tag = "5")]
    id: Vec<u8>,
}

impl TokenPayload for TokenRecord {
    const KIND: u64 = KIND;
    const OTHER_QUERY: &'static str = "belongs to another search: tenant, filter and order_by must \
        be those of the first page";
}

/// All users, where nothing is set; an equality, where both bounds are the same.
#[derive(Clone, PartialEq, Message)]
struct PathRecord {
    /// The field of a range, if it is one.
    #[prost(oneof = "FieldRecord", tags = "1, 2")]
    field: Option<FieldRecord>,
    #[prost(message, optional, tag = "3")]
    lower: Option<BoundRecord>,
    #[prost(message, optional, tag = "4")]
    upper: Option<BoundRecord>,
    /// The kind of identities.
    #[prost(string, tag = "5")]
    kind: String,
    #[prost(string, repeated, tag = "6")]
    identifiers: Vec<String>,
    #[prost(string, optional, tag = "7")]
    prefix: Option<String>,
    /// The ranges after the first.
    #[prost(message, repeated, tag = "8")]
    further: Vec<RangeRecord>,
}

#[derive(Clone, PartialEq, Message)]
struct RangeRecord {
    #[prost(message, optional, tag = "1")]
    lower: Option<BoundRecord>,
    #[prost(message, optional, tag = "2")]
    upper: Option<BoundRecord>,
}

#[derive(Clone, PartialEq, Oneof)]
enum FieldRecord {
    #[prost(string, tag = "1")]
    Attribute(String),
    #[prost(string, tag = "2")]
    Other(String),
}

#[derive(Clone, PartialEq, Message)]
struct BoundRecord {
    #[prost(message, optional, tag = "1")]
    value: Option<ScalarRecord>,
    #[prost(bool, tag = "2")]
    excluded: bool,
}

#[derive(Clone, PartialEq, Message)]
struct ScalarRecord {
    #[prost(oneof = "ScalarKind", tags = "1, 2, 3, 4, 5")]
    kind: Option<ScalarKind>,
}

#[derive(Clone, PartialEq, Oneof)]
enum ScalarKind {
    #[prost(sint64, tag = "1")]
    Int(i64),
    #[prost(double, tag = "2")]
    Double(f64),
    #[prost(string, tag = "3")]
    String(String),
    #[prost(bool, tag = "4")]
    Bool(bool),
    #[prost(sint64, tag = "5")]
    Time(i64),
}

impl From<&Scalar> for ScalarRecord {
    fn from(scalar: &Scalar) -> Self {
        let kind = match scalar {
            Scalar::Int(number) => ScalarKind::Int(*number),
            Scalar::Double(number) => ScalarKind::Double(*number),
            Scalar::String(text) => ScalarKind::String(text.clone()),
            Scalar::Bool(yes) => ScalarKind::Bool(*yes),
            Scalar::Time(time) => ScalarKind::Time(time.as_millis()),
        };
        Self { kind: Some(kind) }
    }
}

impl TryFrom<ScalarRecord> for Scalar {
    type Error = DamagedToken;

    fn try_from(record: ScalarRecord) -> Result<Self, DamagedToken> {
        Ok(match record.kind.ok_or(DamagedToken)? {
            ScalarKind::Int(number) => Self::Int(number),
            ScalarKind::Double(number) if number.is_nan() => return Err(DamagedToken),
            ScalarKind::Double(number) => Self::Double(number),
            ScalarKind::String(text) => Self::String(text),
            ScalarKind::Bool(yes) => Self::Bool(yes),
            ScalarKind::Time(millis) => Self::Time(Timestamp::from_millis(millis)),
        })
    }
}

fn bound_record(bound: &Bound<Scalar>) -> Option<BoundRecord> {
    let (value, excluded) = match bound {
        Bound::Unbounded => return None,
        Bound::Included(value) => (value, false),
        Bound::Excluded(value) => (value, true),
    };
    Some(BoundRecord { value: Some(value.into()), excluded })
}

fn read_bound(record: Option<BoundRecord>) -> Result<Bound<Scalar>, DamagedToken> {
    let Some(BoundRecord { value, excluded }) = record else { return Ok(Bound::Unbounded) };
    let scalar = value.ok_or(DamagedToken)?.try_into()?;
    Ok(if excluded { Bound::Excluded(scalar) } else { Bound::Included(scalar) })
}

impl From<&Range> for RangeRecord {
    fn from(range: &Range) -> Self {
        Self { lower: bound_record(&range.lower), upper: bound_record(&range.upper) }
    }
}

impl TryFrom<RangeRecord> for Range {
    type Error = DamagedToken;

    fn try_from(record: RangeRecord) -> Result<Self, DamagedToken> {
        Ok(Self { lower: read_bound(record.lower)?, upper: read_bound(record.upper)? })
    }
}

impl From<&Field> for FieldRecord {
    fn from(field: &Field) -> Self {
        match field {
            Field::Attribute(name) => Self::Attribute(name.clone()),
            other => Self::Other(field_word(other)),
        }
    }
}

/// The field as tokens name it.
fn field_word(field: &Field) -> String {
    match field {
        Field::NameForm => "form of display_name".to_owned(),
        other => other.to_string(),
    }
}

impl TryFrom<FieldRecord> for Field {
    type Error = DamagedToken;

    fn try_from(record: FieldRecord) -> Result<Self, DamagedToken> {
        let others = [
            Self::DisplayName,
            Self::CreateTime,
            Self::State,
            Self::NameForm,
            Self::ReversedDomain,
            Self::ReversedPhone,
        ];
        match record {
            FieldRecord::Attribute(name) => Ok(Self::Attribute(name)),
            FieldRecord::Other(word) => {
                others.into_iter().find(|field| field_word(field) == word).ok_or(DamagedToken)
            }
        }
    }
}

impl From<&AccessPath> for PathRecord {
    fn from(path: &AccessPath) -> Self {
        let of_range = |field: &Field, range: &Range| Self {
            field: Some(field.into()),
            lower: bound_record(&range.lower),
            upper: bound_record(&range.upper),
            ..Self::default()
        };
        match path {
            AccessPath::All => Self::default(),
            AccessPath::Equals { field, value } => of_range(field, &Range::point(value.clone())),
            AccessPath::Range { field, ranges } => {
                let Some((first, further)) = ranges.split_first() else { return Self::default() };
                let further = further.iter().map(RangeRecord::from).collect();
                Self { further, ..of_range(field, first) }
            }
            AccessPath::Identity(identifiers) => Self {
                kind: identifiers.first().map(|first| first.kind().to_string()).unwrap_or_default(),
                identifiers: identifiers.iter().map(|one| one.canonical().to_owned()).collect(),
                ..Self::default()
            },
            AccessPath::IdentityPrefix { kind, prefix } => {
                Self { kind: kind.to_string(), prefix: Some(prefix.clone()), ..Self::default() }
            }
        }
    }
}

impl TryFrom<PathRecord> for AccessPath {
    type Error = DamagedToken;

    fn try_from(record: PathRecord) -> Result<Self, DamagedToken> {
        let PathRecord { field, lower, upper, kind, identifiers, prefix, further } = record;
        if let Some(field) = field {
            let records = [RangeRecord { lower, upper }].into_iter().chain(further);
            let ranges = records.map(Range::try_from).collect::<Result<_, _>>()?;
            return Ok(Self::of_ranges(field.try_into()?, ranges));
        }
        if kind.is_empty() {
            return Ok(Self::All);
        }
        let kind: Kind = kind.parse().map_err(|_| DamagedToken)?;
        Ok(match prefix {
            Some(prefix) => Self::IdentityPrefix { kind, prefix },
            None => Self::Identity(
                identifiers.into_iter().map(|one| Identifier::from_canonical(kind, one)).collect(),
            ),
        })
    }
}

impl From<&PageToken> for TokenRecord {
    fn from(token: &PageToken) -> Self {
        Self {
            path: Some(PathRecord::from(&token.path)),
            value: token.position.value.as_ref().map(ScalarRecord::from),
            id: token.position.id.as_bytes().to_vec(),
        }
    }
}

impl TryFrom<TokenRecord> for PageToken {
    type Error = DamagedToken;

    fn try_from(record: TokenRecord) -> Result<Self, DamagedToken> {
        let id: [u8; 16] = record.id.try_into().map_err(|_| DamagedToken)?;
        let position = Position {
            value: record.value.map(Scalar::try_from).transpose()?,
            id: LocalityId::from(id),
        };
        Ok(Self { path: record.path.ok_or(DamagedToken)?.try_into()?, position })
    }
}

//! `polynym sample`: works without a server.

use std::io::{BufWriter, Write};

use clap::Args;
use prost_types::Timestamp;

use super::codec;
use crate::cli::failure::Failure;
use crate::identifier::{Kind, RawIdentifier};
use crate::proto::v1::attribute_value::Kind as ValueKind;
use crate::proto::v1::identifier::Kind as IdentifierKind;
use crate::proto::v1::{AttributeValue, Identifier, Identity, Phone, Social, StringList, User};
use crate::sample::generated::{SampleUser, SampleUsers, SampleValue};

pub const EXAMPLES: &str = "\
Examples:
  polynym sample --users 1000 --seed 1 > users.jsonl
  polynym sample --users 100000 --attributes 20 --dirty 0 | polynym import -

The same arguments print the same users. Dirty ones have another user's address, no valid one, an
address of the same person that is written in another way, or a name as a form took it.";

/// `polynym sample`.
#[derive(Args)]
pub struct Sample {
    /// The number of users.
    #[arg(long, value_name = "N", default_value_t = 100)]
    users: u64,
    /// The seed: other seeds give other users.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// The attributes of each user.
    #[arg(long, value_name = "N", default_value_t = 3)]
    attributes: usize,
    /// How many in a hundred are dirty.
    #[arg(long, value_name = "PERCENT", default_value_t = 2,
        value_parser = clap::value_parser!(u8).range(0..=100))]
    dirty: u8,
}

pub fn run(command: &Sample) -> Result<(), Failure> {
    let &Sample { users, seed, attributes, dirty } = command;
    let sample = SampleUsers { seed, attributes, dirty };
    let mut out = BufWriter::with_capacity(256 << 10, std::io::stdout().lock());
    for n in 0..users {
        let line = codec::user_object(&message(sample.user(n)));
        let line = line.map_err(|error| Failure::Other(format!("cannot write JSON: {error}")))?;
        serde_json::to_writer(&mut out, &line)
            .map_err(|error| Failure::from(std::io::Error::from(error)))?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

fn message(user: SampleUser) -> User {
    let identities = user.identifiers.iter().filter_map(|text| identity(text)).collect();
    let attributes = user.attributes.into_iter();
    User {
        display_name: user.display_name,
        identities,
        attributes: attributes.map(|(name, of)| (name, value(of))).collect(),
        ..User::default()
    }
}

fn identity(text: &str) -> Option<Identity> {
    let raw = RawIdentifier::from_text(text).ok()?;
    let typed = raw.typed().to_owned();
    let kind = match raw.kind() {
        Kind::Email => IdentifierKind::Email(typed),
        Kind::Handle => IdentifierKind::Handle(typed),
        Kind::Phone => IdentifierKind::Phone(Phone { number: typed, region: String::new() }),
        Kind::Social => {
            let RawIdentifier::Social { provider, .. } = raw else { return None };
            IdentifierKind::Social(Social { provider: provider.to_owned(), subject: typed })
        }
        Kind::Url => IdentifierKind::Url(typed),
    };
    let identifier = Some(Identifier { kind: Some(kind) });
    Some(Identity { identifier, ..Identity::default() })
}

fn value(value: SampleValue) -> AttributeValue {
    let kind = match value {
        SampleValue::Text(text) => ValueKind::StringValue(text),
        SampleValue::Int(number) => ValueKind::IntValue(number),
        SampleValue::Double(number) => ValueKind::DoubleValue(number),
        SampleValue::Bool(yes) => ValueKind::BoolValue(yes),
        SampleValue::Time(millis) => {
            ValueKind::TimeValue(Timestamp { seconds: millis / 1_000, nanos: 0 })
        }
        SampleValue::List(values) => ValueKind::ListValue(StringList { values }),
    };
    AttributeValue { kind: Some(kind) }
}

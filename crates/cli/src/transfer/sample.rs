//! `polynym sample`.

use std::io::{BufWriter, Write};

use clap::Args;
use prost_types::Timestamp;

use crate::failure::Failure;
use crate::sample::generated::{SampleUser, SampleUsers, SampleValue};
use crate::text::identifier;
use polynym_lines::UserLine;
use polynym_proto::v1::attribute_value::Kind as ValueKind;
use polynym_proto::v1::{AttributeValue, Identity, StringList, User};

pub const EXAMPLES: &str = "\
Examples:
  polynym sample --users 1000 --seed 1 > users.jsonl
  polynym sample --users 100000 --attributes 20 --dirty 0 | polynym import -

The same arguments print the same users. A dirty user has another user's address, an invalid one, a
different spelling of the same person's address, or a badly formatted name.";

/// `polynym sample`.
#[derive(Args)]
pub struct Sample {
    /// The number of users.
    #[arg(long, value_name = "N", default_value_t = 100)]
    users: u64,
    /// The seed. Each seed gives different users.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// The number of attributes of each user.
    #[arg(long, value_name = "N", default_value_t = 3)]
    attributes: usize,
    /// The percentage of dirty users.
    #[arg(long, value_name = "PERCENT", default_value_t = 2,
        value_parser = clap::value_parser!(u8).range(0..=100))]
    dirty: u8,
}

pub fn run(command: &Sample) -> Result<(), Failure> {
    let &Sample { users, seed, attributes, dirty } = command;
    let sample = SampleUsers { seed, attributes, dirty };
    let mut out = BufWriter::with_capacity(256 << 10, std::io::stdout().lock());
    for n in 0..users {
        let user = message(sample.user(n));
        serde_json::to_writer(&mut out, &UserLine { user: &user, internals: None })
            .map_err(|error| Failure::from(std::io::Error::from(error)))?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

fn message(user: SampleUser) -> User {
    User {
        display_name: user.display_name,
        identities: user.identifiers.iter().filter_map(|text| identity(text)).collect(),
        attributes: user
            .attributes
            .into_iter()
            .map(|(name, attribute)| (name, value(attribute)))
            .collect(),
        ..User::default()
    }
}

fn identity(text: &str) -> Option<Identity> {
    let identifier = Some(identifier::parse(text).ok()?.message);
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

//! Reads the tenants that files describe, and finds all faults of the files.

use std::collections::BTreeMap;

use polynym_identifier::{Identifier, RawIdentifier, is_region};
use polynym_presentation::duration;
use polynym_presentation::policy::{Field, POLICIES, Policy, Value};
use polynym_proto::v1::{Policies, ReservedHandles};
use prost_types::Duration;

use super::node::{Data, Fault, Key, Node, Position, parse};
use super::source::Source;
use crate::config::unknown_key;

/// The maximum number of tenants in all files.
pub const MAX_TENANTS: usize = 10_000;
/// The maximum length of a tenant's name.
pub const MAX_NAME: usize = 63;
/// The maximum number of reserved handles.
pub const MAX_HANDLES: usize = 1_000;

/// The maximum number of faults that are collected.
const MAX_FAULTS: usize = 1_000;
/// The characters of an unknown key in a fault.
const MAX_SHOWN: usize = 100;

/// The list of tenants of a file.
pub const TENANTS: &str = "tenants";
/// The name of a tenant or an attribute.
pub const NAME: &str = "name";
/// The policies of one value, except for holds.
pub const SINGLE: &str = "policies";
/// The holds by kind.
pub const HOLDS: &str = "holds";
/// The maximum number of regions.
pub const MAX_REGIONS: usize = 8;
/// The regions of phone numbers.
pub const REGIONS: &str = "phone_regions";
/// The reserved handles.
pub const HANDLES: &str = "reserved_handles";
/// The definitions of attributes.
pub const DEFINITIONS: &str = "attribute_definitions";

/// A tenant as the files describe it.
#[derive(Clone, Debug)]
pub struct Declared {
    /// The name.
    pub name: String,
    /// The position of the name.
    pub position: Position,
    /// All policies. Those that the files do not name have the values of a new tenant.
    pub policies: Policies,
    /// The positions of the policies that the files name, by path.
    pub positions: BTreeMap<String, Position>,
}

/// The policies of a new tenant.
pub fn defaults() -> Policies {
    let mut policies = Policies::default();
    POLICIES.iter().for_each(|policy| policy.set(policy.default, &mut policies));
    policies
}

/// The tenants of files, in their order. Faults are added to `faults`.
pub fn tenants(sources: &[Source], faults: &mut Vec<Fault>) -> Vec<Declared> {
    let mut reader = Reader { sources, faults, tenants: Vec::new(), names: BTreeMap::new() };
    for (file, source) in sources.iter().enumerate() {
        match parse(file, &source.text) {
            // The fault of a file that cannot be read is known.
            Ok(documents) if documents.is_empty() && source.is_read => {
                reader.fault(Position { file, ..Position::default() }, NO_TENANTS);
            }
            Ok(documents) => documents.into_iter().for_each(|document| reader.document(document)),
            Err(fault) => reader.faults.push(fault),
        }
    }
    reader.tenants
}

const NO_TENANTS: &str = "no tenant is described: write a list below `tenants`";

/// The tenants and faults that were found in files.
pub struct Reader<'a> {
    sources: &'a [Source],
    faults: &'a mut Vec<Fault>,
    tenants: Vec<Declared>,
    /// The positions of the tenants, by name.
    names: BTreeMap<String, Position>,
}

impl Reader<'_> {
    /// Adds a fault, unless there are many.
    pub fn fault(&mut self, position: Position, message: impl Into<String>) {
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(Fault::new(position, message));
        }
    }

    fn document(&mut self, document: Node) {
        let (position, known_faults) = (document.position, self.faults.len());
        let entries = self.entries(document, &[TENANTS]);
        if entries.is_empty() && self.faults.len() == known_faults {
            self.fault(position, NO_TENANTS);
        }
        for (_, tenants) in entries {
            for node in self.items(tenants) {
                self.tenant(node);
            }
        }
    }

    fn tenant(&mut self, node: Node) {
        let mut position = node.position;
        let (mut name, mut policies) = (None, defaults());
        let mut positions = BTreeMap::new();
        for (key, value) in
            self.entries(node, &[NAME, SINGLE, HOLDS, HANDLES, REGIONS, DEFINITIONS])
        {
            match key.text.as_str() {
                NAME => {
                    position = value.position;
                    name = Some(self.name(&value));
                }
                SINGLE => self.policies(value, false, &mut policies, &mut positions),
                HOLDS => self.policies(value, true, &mut policies, &mut positions),
                HANDLES => {
                    positions.insert(key.text, key.position);
                    policies.reserved_handles = self.handles(value);
                }
                REGIONS => {
                    positions.insert(key.text, key.position);
                    policies.phone_regions = self.regions(value);
                }
                _ => {
                    positions.insert(key.text, key.position);
                    policies.attribute_definitions = self.definitions(value);
                }
            }
        }
        match name {
            None => self.fault(position, "a tenant needs a `name`"),
            Some(None) => {}
            Some(Some(name)) => self.add(Declared { name, position, policies, positions }),
        }
    }

    fn add(&mut self, tenant: Declared) {
        let Declared { name, position, .. } = &tenant;
        if let Some(first) = self.names.insert(name.clone(), *position) {
            let file = self.sources.get(first.file).map_or("", |source| source.name.as_str());
            let rule = format!(
                "tenant {name} is described at {file}:{}:{}, too",
                first.line, first.column
            );
            return self.fault(*position, rule);
        }
        if self.tenants.len() == MAX_TENANTS {
            return self.fault(*position, format!("more than {MAX_TENANTS} tenants"));
        }
        self.tenants.push(tenant);
    }

    fn name(&mut self, node: &Node) -> Option<String> {
        let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let name = text(node).filter(|name| {
            (1..=MAX_NAME).contains(&name.len())
                && name.chars().all(is_allowed)
                && !name.starts_with('-')
        });
        if name.is_none() {
            let rule = "a tenant's name is a text of 1 to 63 characters: a-z, 0-9 and '-', but no \
                        leading '-'; write one of digits in quotes";
            self.fault(node.position, rule);
        }
        name.map(str::to_owned)
    }

    /// Reads policies of one value: the holds, or all others.
    fn policies(
        &mut self,
        node: Node,
        of_holds: bool,
        policies: &mut Policies,
        positions: &mut BTreeMap<String, Position>,
    ) {
        let own = POLICIES.iter().filter(|policy| policy.hold().is_some() == of_holds);
        let by_key: BTreeMap<_, _> =
            own.map(|policy| (policy.hold().unwrap_or(policy.path), policy)).collect();
        let known: Vec<_> = by_key.keys().copied().collect();
        for (key, written) in self.entries(node, &known) {
            let Some(policy) = by_key.get(key.text.as_str()) else { continue };
            positions.insert(policy.path.to_owned(), key.position);
            match value(policy, &written.data) {
                Ok(value) => policy.set(value, policies),
                Err(rule) => self.fault(written.position, rule),
            }
        }
    }

    fn handles(&mut self, node: Node) -> Option<ReservedHandles> {
        let position = node.position;
        if node.data == Data::Null {
            self.fault(position, "write [] for no handles, or remove the key for those by default");
            return None;
        }
        let mut handles = Vec::new();
        for node in self.items(node) {
            let Some(handle) = text(&node) else {
                self.fault(node.position, "write a handle, in quotes if it looks like a number");
                continue;
            };
            match Identifier::parse(RawIdentifier::Handle(handle)) {
                Ok(_) => handles.push(handle.to_owned()),
                Err(rejection) => self.fault(node.position, rejection.to_string()),
            }
        }
        if handles.len() > MAX_HANDLES {
            self.fault(position, format!("at most {MAX_HANDLES} handles"));
        }
        Some(ReservedHandles { handles })
    }

    fn regions(&mut self, node: Node) -> Vec<String> {
        let position = node.position;
        let mut regions: Vec<String> = Vec::new();
        for node in self.items(node) {
            match text(&node).filter(|region| is_region(region)) {
                Some(region) if regions.iter().any(|own| own == region) => {
                    self.fault(node.position, "this country is there twice");
                }
                Some(region) => regions.push(region.to_owned()),
                None => self.fault(
                    node.position,
                    "write two capital letters such as DE; quote \"NO\", false in YAML",
                ),
            }
        }
        if regions.len() > MAX_REGIONS {
            self.fault(position, format!("at most {MAX_REGIONS} countries"));
        }
        regions
    }

    /// The entries of a mapping with known keys, each once.
    pub fn entries(&mut self, node: Node, known: &[&str]) -> Vec<(Key, Node)> {
        let entries = match node.data {
            Data::Map(entries) => entries,
            Data::Null => return Vec::new(),
            _ => {
                let rule = format!("write a mapping with these keys: {}", known.join(", "));
                self.fault(node.position, rule);
                return Vec::new();
            }
        };
        let mut found: Vec<(Key, Node)> = Vec::new();
        for (key, value) in entries {
            if !known.contains(&key.text.as_str()) {
                let shown: String = key.text.chars().take(MAX_SHOWN).collect();
                self.fault(key.position, format!("{shown}: {}", unknown_key(known, &shown)));
            } else if found.iter().any(|(other, _)| other.text == key.text) {
                self.fault(key.position, format!("{} is written twice", key.text));
            } else {
                found.push((key, value));
            }
        }
        found
    }

    /// The items of a list.
    pub fn items(&mut self, node: Node) -> Vec<Node> {
        match node.data {
            Data::List(items) => items,
            Data::Null => Vec::new(),
            _ => {
                self.fault(node.position, "write a list");
                Vec::new()
            }
        }
    }
}

/// The text of a node; none if it is something else.
pub fn text(node: &Node) -> Option<&str> {
    match &node.data {
        Data::Text(text) => Some(text),
        _ => None,
    }
}

/// The value of a policy.
///
/// # Errors
/// The rule that it breaks.
pub fn value(policy: &Policy, data: &Data) -> Result<Value, String> {
    let max = policy.max.unwrap_or(i64::MAX);
    match (policy.field, data) {
        (Field::Switch(_), Data::Switch(on)) => Ok(Value::Switch(*on)),
        (Field::Switch(_), _) => Err("write true or false".to_owned()),
        (Field::Time(_), Data::Text(text)) => time(text, max).map(|time| Value::Time(Some(time))),
        (Field::Time(_), _) => Err(TIME_RULE.to_owned()),
        (Field::Count(_), Data::Number(number)) if (1..=max).contains(number) => {
            Ok(Value::Count(i32::try_from(*number).unwrap_or(i32::MAX)))
        }
        (Field::Count(_), _) => Err(format!("write a number from 1 to {max}")),
    }
}

const TIME_RULE: &str = "write a duration such as 30d, 12h, 5m or 10s; 0d for none";

/// A duration of at most `max` seconds.
fn time(text: &str, max: i64) -> Result<Duration, String> {
    let time = duration::parse(text).ok_or(TIME_RULE)?;
    if time.subsec_nanos() % 1_000_000 != 0 {
        return Err("write whole milliseconds".to_owned());
    }
    let longest = Duration { seconds: max, nanos: 0 };
    let exact = Duration { seconds: 0, nanos: time.subsec_nanos() as i32 };
    match i64::try_from(time.as_secs()) {
        Ok(seconds) if seconds < max || (seconds == max && exact.nanos == 0) => {
            Ok(Duration { seconds, ..exact })
        }
        _ => Err(format!("at most {}", duration::text(Some(&longest)))),
    }
}

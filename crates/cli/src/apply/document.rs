//! The tree of a file that describes tenants, as `reader` reads it.

use polynym_presentation::attribute;
use polynym_presentation::duration::exact_argument;
use polynym_presentation::policy::{POLICIES, Policy, Value};
use polynym_proto::v1::{AttributeDefinition, Policies, Tenant};

use super::definition::{EVIDENCE, FIND, INDEXED, TYPE};
use super::difference::is_default;
use super::node::{Data, Key, Node, Position};
use super::reader::{DEFINITIONS, HANDLES, HOLDS, NAME, REGIONS, SINGLE, TENANTS, defaults};

/// The file of these tenants. It names all of their policies.
pub fn of_tenants(tenants: &[Tenant]) -> Node {
    let tenants = tenants.iter().map(tenant).collect();
    map(vec![(TENANTS, Data::List(tenants).into())])
}

fn tenant(tenant: &Tenant) -> Node {
    let policies = tenant.policies.clone().unwrap_or_else(defaults);
    let mut entries = vec![
        (NAME, Data::Text(tenant.tenant.clone()).into()),
        (SINGLE, single(&policies, false)),
        (HOLDS, single(&policies, true)),
    ];
    if let Some(reserved) = &policies.reserved_handles {
        let handles = reserved.handles.iter().map(|handle| Data::Text(handle.clone()).into());
        entries.push((HANDLES, Data::List(handles.collect()).into()));
    }
    if !policies.phone_regions.is_empty() {
        let regions = policies.phone_regions.iter().map(|region| Data::Text(region.clone()).into());
        entries.push((REGIONS, Data::List(regions.collect()).into()));
    }
    let own = policies.attribute_definitions.iter().filter(|definition| !is_default(definition));
    let definitions: Vec<_> = own.map(definition).collect();
    if !definitions.is_empty() {
        entries.push((DEFINITIONS, Data::List(definitions).into()));
    }
    map(entries)
}

/// The policies of one value: the holds, or all others.
fn single(policies: &Policies, of_holds: bool) -> Node {
    let own = POLICIES.iter().filter(|policy| policy.hold().is_some() == of_holds);
    let entry = |policy: &'static Policy| {
        let data = match policy.value(policies) {
            Value::Switch(on) => Data::Switch(on),
            Value::Time(time) => Data::Text(exact_argument(time.as_ref())),
            Value::Count(count) => Data::Number(count.into()),
        };
        (policy.hold().unwrap_or(policy.path), data.into())
    };
    map(own.map(entry).collect())
}

fn definition(definition: &AttributeDefinition) -> Node {
    let mut entries = vec![(NAME, Data::Text(definition.name.clone()).into())];
    let type_name = attribute::words(definition.r#type()).argument;
    if !type_name.is_empty() {
        entries.push((TYPE, Data::Text(type_name.to_owned()).into()));
    }
    entries.push((INDEXED, Data::Switch(definition.indexed.unwrap_or(true)).into()));
    entries.push((EVIDENCE, Data::Switch(definition.evidence).into()));
    entries.push((FIND, Data::Switch(definition.find).into()));
    map(entries)
}

fn map(entries: Vec<(&str, Node)>) -> Node {
    let key = |text: &str| Key { position: Position::default(), text: text.to_owned() };
    Data::Map(entries.into_iter().map(|(text, node)| (key(text), node)).collect()).into()
}

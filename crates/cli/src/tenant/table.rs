//! A tenant as a table.

use crate::output::{self, Table, printable};
use polynym_presentation::policy::{POLICIES, Value};
use polynym_presentation::{attribute, duration, time};
use polynym_proto::v1::{AttributeDefinition, Policies, Tenant as Message};

/// The rows about changes of the history's retention.
fn history_rows(policies: &Policies) -> Vec<(String, String)> {
    let since = policies
        .history_since_time
        .as_ref()
        .map(|time| ("history is complete since".to_owned(), time.to_string()));
    let extension = policies.history_extend_time.as_ref().map(|time| {
        let former = duration::short(policies.history_former_retention.as_ref());
        (format!("history of before {time} is kept for"), former)
    });
    let change = policies
        .history_change_time
        .as_ref()
        .map(|time| ("removal of older history began at".to_owned(), time.to_string()));
    [since, extension, change].into_iter().flatten().collect()
}

/// The rows of a tenant: its policies and its times.
pub fn fields(tenant: &Message) -> Table {
    let default = Policies::default();
    let policies = tenant.policies.as_ref().unwrap_or(&default);
    let mut table = output::table(["tenant", &printable(&tenant.tenant)]);
    let mut row = |name: &str, value: String| {
        table.add_row([name.to_owned(), value]);
    };
    for policy in POLICIES {
        let value = policy.value(policies);
        if value != Value::Time(None) {
            row(policy.name, value.text(duration::short));
        }
    }
    history_rows(policies).into_iter().for_each(|(name, value)| row(&name, value));
    let reserved = policies.reserved_handles.as_ref();
    let reserved = reserved.map_or_else(|| "default".to_owned(), |list| list.handles.join(", "));
    row("reserved handles", printable(&reserved).into_owned());
    if !policies.phone_regions.is_empty() {
        row("phone regions", printable(&policies.phone_regions.join(", ")).into_owned());
    }
    for definition in &policies.attribute_definitions {
        let name = format!("attribute {}", printable(&definition.name));
        row(&name, definition_text(definition));
    }
    row("created", time::text(tenant.create_time.as_ref()));
    row("policies changed", time::text(tenant.update_time.as_ref()));
    if let Some(time) = &tenant.delete_time {
        let users = if tenant.delete_users { "with its users" } else { "unless it has users" };
        row("being deleted", format!("since {time}, {users}"));
    }
    row("etag", printable(&tenant.etag).into_owned());

    table
}

/// The definition of an attribute in words.
fn definition_text(definition: &AttributeDefinition) -> String {
    let type_name = match attribute::words(definition.r#type()) {
        any if any.argument.is_empty() => any.name,
        known => known.argument,
    };
    let change = match &definition.index_change_time {
        Some(time) => format!(", the index is being changed since {time}"),
        None => String::new(),
    };
    format!("{}{change}", attribute::definition(definition, type_name))
}

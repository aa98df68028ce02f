//! A tenant as a table.

use prost_types::Duration as ProtoDuration;

use crate::output::{self, Table, printable};
use polynym_identifier::Kind;
use polynym_presentation::{duration, time};
use polynym_proto::v1::{AttributeDefinition, AttributeType, Holds, Policies, Tenant as Message};

/// The hold of a kind.
pub const fn hold_of(holds: &mut Holds, kind: Kind) -> &mut Option<ProtoDuration> {
    match kind {
        Kind::Email => &mut holds.email,
        Kind::Handle => &mut holds.handle,
        Kind::Phone => &mut holds.phone,
        Kind::Social => &mut holds.social,
        Kind::Url => &mut holds.url,
    }
}

/// The rows about the history.
fn history_rows(policies: &Policies) -> Vec<(String, String)> {
    let retention = duration::short(policies.history_retention.as_ref());
    let mut rows = vec![("history is kept for".to_owned(), retention)];
    if let Some(time) = &policies.history_since_time {
        rows.push(("history is complete since".to_owned(), time.to_string()));
    }
    if let Some(time) = &policies.history_extend_time {
        let former = duration::short(policies.history_former_retention.as_ref());
        rows.push((format!("history of before {time} is kept for"), former));
    }
    if let Some(time) = &policies.history_change_time {
        rows.push(("removal of older history began at".to_owned(), time.to_string()));
    }
    rows
}

/// The rows of a tenant: its policies and its times.
pub fn fields(tenant: &Message) -> Table {
    let policies = tenant.policies.clone().unwrap_or_default();
    let history = history_rows(&policies);
    let mut holds = policies.holds.unwrap_or_default();
    let mut table = output::table(["tenant", &printable(&tenant.tenant)]);
    let mut row = |name: &str, value: String| {
        table.add_row([name.to_owned(), value]);
    };
    for kind in Kind::ALL {
        if let Some(time) = hold_of(&mut holds, kind) {
            row(&format!("{kind}s are held for"), duration::short(Some(time)));
        }
    }

    let switch = |on: bool| if on { "on" } else { "off" }.to_owned();
    row("hide unverified", switch(policies.hide_unverified));
    row("verified wins", switch(policies.verified_wins));
    if let Some(time) = &policies.phone_takeover_after {
        row("phones can be taken after", duration::short(Some(time)));
    }
    row("keep primary identity", switch(policies.keep_primary_identity));
    row("keep last identity", switch(policies.keep_last_identity));
    row("allow look-alikes", switch(policies.allow_lookalikes));
    let reserved = policies
        .reserved_handles
        .map_or_else(|| "default".to_owned(), |list| list.handles.join(", "));
    row("reserved handles", printable(&reserved).into_owned());
    for definition in &policies.attribute_definitions {
        let name = format!("attribute {}", printable(&definition.name));
        row(&name, definition_text(definition));
    }
    row("deleted users are kept for", duration::short(policies.restore_window.as_ref()));
    row("merges can be undone for", duration::short(policies.undo_window.as_ref()));
    history.into_iter().for_each(|(name, value)| row(&name, value));
    row("notices are kept for", duration::short(policies.inbox_retention.as_ref()));
    row("notices in an inbox", policies.inbox_limit.to_string());
    row("rule notices", switch(policies.rule_notices));
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
    let value_type = match definition.r#type() {
        AttributeType::Unspecified => "any type".to_owned(),
        known => known.as_str_name().trim_start_matches("ATTRIBUTE_TYPE_").to_lowercase(),
    };
    let indexed = if definition.indexed() { "indexed" } else { "not indexed" };
    let change = match &definition.index_change_time {
        Some(time) => format!(", the index is being changed since {time}"),
        None => String::new(),
    };
    format!("{value_type}, {indexed}{change}")
}

//! Users as tables.

use std::collections::BTreeMap;

use crate::failure::Failure;
use crate::output::{self, Table, printable};
use crate::text::{attribute, identifier};
use polynym_presentation::{state, time};
use polynym_proto::v1::{AttributeValue, Identity, User};

/// Prints a user's fields, identities and attributes.
pub fn print(user: &User) -> Result<(), Failure> {
    output::print_table(&fields(user))?;
    if !user.identities.is_empty() {
        output::print_table(&identities(&user.identities))?;
    }
    if !user.attributes.is_empty() {
        output::print_table(&attributes(&user.attributes))?;
    }
    Ok(())
}

fn fields(user: &User) -> Table {
    let mut table = output::table(["user", &user.user_id]);
    let mut row = |name: &str, value: String| {
        if !value.is_empty() {
            table.add_row([name.to_owned(), value]);
        }
    };
    row("name", printable(&user.display_name).into_owned());
    row("tenant", printable(&user.tenant).into_owned());
    row("state", state::word(user.state()).to_owned());
    row("created", time::text(user.create_time.as_ref()));
    row("updated", time::text(user.update_time.as_ref()));
    row("deleted", time::text(user.delete_time.as_ref()));
    row("to be purged", time::text(user.purge_time.as_ref()));
    row("merged into", printable(&user.merged_into).into_owned());
    row("etag", printable(&user.etag).into_owned());

    table
}

fn attributes(attributes: &BTreeMap<String, AttributeValue>) -> Table {
    let mut table = output::table(["attribute", "value"]);
    for (name, value) in attributes {
        table.add_row([printable(name).into_owned(), attribute::text(value)]);
    }
    table
}

fn identities(identities: &[Identity]) -> Table {
    let mut table = output::table(["identity", "typed as", "primary", "linked", "verified"]);
    for identity in identities {
        let verified = match printable(&identity.verified_by) {
            by if by.is_empty() => time::text(identity.verify_time.as_ref()),
            by => format!("{} by {by}", time::text(identity.verify_time.as_ref())),
        };
        table.add_row([
            identifier::text(identity.identifier.as_ref()),
            printable(&identity.display).into_owned(),
            if identity.primary { "yes".to_owned() } else { String::new() },
            time::text(identity.link_time.as_ref()),
            verified,
        ]);
    }

    table
}

/// A user as a table row: id, name, state and identities.
pub fn summary(user: &User) -> [String; 4] {
    let identities = user.identities.iter().map(|own| identifier::text(own.identifier.as_ref()));
    [
        printable(&user.user_id).into_owned(),
        printable(&user.display_name).into_owned(),
        state::word(user.state()).to_owned(),
        identities.collect::<Vec<_>>().join("\n"),
    ]
}

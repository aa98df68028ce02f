//! The messages of bulk changes.

use std::collections::BTreeMap;

use crate::grpc::convert;
use crate::grpc::status::Refusal;
use polynym_access::{Call, Role};
use polynym_directory::{
    BulkAction, BulkChange, BulkUsers, Error, Invalid, StartBulkChange, Value,
    encoded::bulk_change::bulk_change_message,
};
use polynym_proto::v1;
use polynym_proto::v1::bulk_action::{Action, Attributes};
use polynym_transport::protocol::role_too_low;

/// The bulk change to start.
pub fn start(request: &v1::StartBulkChangeRequest) -> Result<StartBulkChange<'_>, Error> {
    let users = match &request.users {
        Some(_) if !request.filter.is_empty() => {
            return Err(Error::invalid(
                Invalid::Field,
                "users",
                "and a filter: use one of the two",
            ));
        }
        Some(users) => BulkUsers::Listed(&users.user_ids),
        None => BulkUsers::Matching(&request.filter),
    };
    Ok(StartBulkChange {
        id: &request.bulk_id,
        users,
        action: action(request.action.as_ref())?,
        dry_run: request.validate_only,
    })
}

fn action(message: Option<&v1::BulkAction>) -> Result<BulkAction, Error> {
    let missing = || Error::invalid(Invalid::Field, "action", "is missing");
    let action = message.and_then(|message| message.action.as_ref());
    Ok(match action.ok_or_else(missing)? {
        Action::Disable(_) => BulkAction::Disable,
        Action::Enable(_) => BulkAction::Enable,
        Action::Delete(_) => BulkAction::Delete,
        Action::Undelete(_) => BulkAction::Undelete,
        Action::Attributes(attributes) => BulkAction::Attributes(edits(attributes)?),
        Action::Undo(undo) => BulkAction::Undo(undo.operation_id.clone()),
    })
}

fn edits(attributes: &Attributes) -> Result<BTreeMap<String, Option<Value>>, Error> {
    let set = convert::attributes_of("action.attributes.set", &attributes.set)?;
    let mut edits: BTreeMap<_, _> =
        set.into_iter().map(|(name, value)| (name, Some(value))).collect();
    for (n, name) in attributes.remove.iter().enumerate() {
        if edits.insert(name.clone(), None).is_some() {
            let field = format!("action.attributes.remove[{n}]");
            let rule = "the attribute is set or removed already";
            return Err(Error::invalid(Invalid::Field, field, rule));
        }
    }
    Ok(edits)
}

/// Rejects undoing an operation unless the caller is an admin, as UndoOperation does.
pub fn check_role(call: &Call, action: &BulkAction) -> Result<(), Refusal> {
    match action.undone().is_some() && call.role < Role::Admin {
        true => Err(role_too_low("action.undo", Role::Admin).into()),
        false => Ok(()),
    }
}

/// The bulk change of a response.
pub fn response(outcome: Result<BulkChange, Error>) -> Result<Option<v1::BulkChange>, Error> {
    Ok(Some(bulk_change_message(&outcome?)))
}

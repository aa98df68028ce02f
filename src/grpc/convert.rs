//! Converts between the API's messages and the directory's types.

use std::collections::BTreeMap;
use std::time::Duration;

use prost_types::Timestamp as ProtoTimestamp;

use polynym_directory::{
    AccessPath, Conflict, ConflictPolicy, Consistency, Error, EventKind, EventsRequest,
    HistoryRequest, Invalid, NotRestored, OwnerPeriod, Owners, Plan, Preview, RawIdentity,
    TenantHistoryRequest, Timestamp, UserCount, UserRef, Value, Verification, WatchRequest,
    encoded::event::read_event_type, identifier_message, identity_message, user_message,
    value_message,
};
use polynym_identifier::{Change, IdentityKey, Normalization, RawIdentifier};
use polynym_lines::raw_identifier;
use polynym_proto::v1;
use polynym_proto::v1::{attribute_value, normalize_identity_response};

/// The identities of a user to create.
pub fn raw_identities(messages: &[v1::Identity]) -> Result<Vec<RawIdentity<'_>>, Error> {
    messages.iter().enumerate().map(|(n, message)| raw_identity(n, message)).collect()
}

fn raw_identity(n: usize, message: &v1::Identity) -> Result<RawIdentity<'_>, Error> {
    let field = |name| format!("user.identities[{n}].{name}");
    let time = optional_timestamp(&field("verify_time"), message.verify_time.as_ref())?;
    if time.is_none() && !message.verified_by.is_empty() {
        return Err(Error::invalid(Invalid::Field, field("verified_by"), "needs a verify_time"));
    }

    let identifier = raw_identifier(message.identifier.as_ref());
    // A user copied from another server may have displays. Only social accounts keep them.
    let is_account = matches!(identifier, Some(RawIdentifier::Social { .. }));
    Ok(RawIdentity {
        identifier,
        display: if is_account { &message.display } else { "" },
        verification: time.map(|time| Verification { time, by: message.verified_by.clone() }),
        primary: message.primary,
    })
}

/// The attributes of a request's user.
pub fn attributes(
    messages: &BTreeMap<String, v1::AttributeValue>,
) -> Result<BTreeMap<String, Value>, Error> {
    attributes_of("user.attributes", messages)
}

/// The attributes in a field of a request.
pub fn attributes_of(
    field: &str,
    messages: &BTreeMap<String, v1::AttributeValue>,
) -> Result<BTreeMap<String, Value>, Error> {
    messages
        .iter()
        .enumerate()
        .map(|(n, (name, message))| Ok((name.clone(), value(field, n, message)?)))
        .collect()
}

/// The value of the `n`th attribute by name. Errors do not repeat the unchecked name.
fn value(field: &str, n: usize, message: &v1::AttributeValue) -> Result<Value, Error> {
    use attribute_value::Kind;
    let place = || format!("{field} (name {n} in order)");
    let missing = || Error::invalid(Invalid::Attribute, place(), "an attribute has no value");
    Ok(match message.kind.as_ref().ok_or_else(missing)? {
        Kind::StringValue(text) => Value::String(text.clone()),
        Kind::IntValue(number) => Value::Int(*number),
        Kind::DoubleValue(number) => Value::Double(*number),
        Kind::BoolValue(yes) => Value::Bool(*yes),
        Kind::TimeValue(time) => Value::Time(timestamp(&place(), time)?),
        Kind::ListValue(list) => Value::List(list.values.clone()),
    })
}

/// The time of an optional field.
pub fn optional_timestamp(
    field: &str,
    message: Option<&ProtoTimestamp>,
) -> Result<Option<Timestamp>, Error> {
    message.map(|time| timestamp(field, time)).transpose()
}

pub fn timestamp(field: &str, message: &ProtoTimestamp) -> Result<Timestamp, Error> {
    let millis = message
        .seconds
        .checked_mul(1_000)
        .and_then(|ms| ms.checked_add(i64::from(message.nanos) / 1_000_000));
    millis
        .map(Timestamp::from_millis)
        .filter(|_| (0..1_000_000_000).contains(&message.nanos))
        .filter(|time| (Timestamp::MIN..=Timestamp::MAX).contains(time))
        .ok_or_else(|| {
            let message = "must be a time in the years 1 to 9999, with nanos below 10^9";
            Error::invalid(Invalid::Field, field, message)
        })
}

/// The conflict policy of a merge.
pub fn conflict_policy(number: i32) -> Result<ConflictPolicy, Error> {
    match v1::ConflictPolicy::try_from(number) {
        Ok(v1::ConflictPolicy::Unspecified | v1::ConflictPolicy::PrimaryWins) => {
            Ok(ConflictPolicy::PrimaryWins)
        }
        Ok(v1::ConflictPolicy::SecondaryWins) => Ok(ConflictPolicy::SecondaryWins),
        Ok(v1::ConflictPolicy::Fail) => Ok(ConflictPolicy::Fail),
        Err(_) => Err(Error::invalid(Invalid::Field, "conflict_policy", "is unknown")),
    }
}

/// The message for the preview of a merge.
pub fn preview(preview: &Preview) -> v1::MergePreview {
    let conflict = |conflict: &Conflict| v1::merge_preview::Conflict {
        field: conflict.field.clone(),
        kept: Some(value_message(&conflict.kept)),
        dropped: Some(value_message(&conflict.dropped)),
    };
    v1::MergePreview {
        moved: preview.moved.iter().map(identity_message).collect(),
        conflicts: preview.conflicts.iter().map(conflict).collect(),
        result: Some(user_message(&preview.result)),
    }
}

/// The message for a part that could not be restored.
pub fn not_restored(part: &NotRestored) -> v1::unmerge_users_response::NotRestored {
    let (field, identifier) = match part {
        NotRestored::Identity(identifier) => {
            ("identities".to_owned(), Some(identifier_message(identifier)))
        }
        NotRestored::DisplayName => ("primary.display_name".to_owned(), None),
        NotRestored::Attribute(name) => (format!("primary.attributes.{name}"), None),
    };
    v1::unmerge_users_response::NotRestored { field, identifier }
}

/// The verifier of an identity, or `None` to mark it as unverified.
pub fn verified_by(verified: bool, by: &str) -> Result<Option<String>, Error> {
    if !verified && !by.is_empty() {
        return Err(Error::invalid(
            Invalid::Field,
            "verified_by",
            "must be empty if verified is false",
        ));
    }
    Ok(verified.then(|| by.to_owned()))
}

/// Whether a duration is valid and not negative.
fn is_valid_duration(duration: &prost_types::Duration) -> bool {
    (0..=315_576_000_000).contains(&duration.seconds)
        && (0..1_000_000_000).contains(&duration.nanos)
}

/// The message for the plan of a search.
pub fn plan(plan: &Plan) -> v1::SearchPlan {
    let probe = |(path, entries): &(AccessPath, usize)| v1::search_plan::Probe {
        lead: path.to_string(),
        entries: *entries as i64,
    };
    v1::SearchPlan {
        lead: plan.path.to_string(),
        order: plan.path.order().to_string(),
        probes: plan.probes.iter().map(probe).collect(),
        users_read: plan.read as i64,
        users_matched: plan.matched as i64,
    }
}

/// The message for a number of users.
pub fn user_count(count: UserCount) -> v1::UserCount {
    v1::UserCount { users: count.users as i32, has_more: count.has_more }
}

/// The request for a history.
pub fn history(request: &v1::ListHistoryRequest) -> Result<HistoryRequest<'_>, Error> {
    use v1::list_history_request::User;
    let user = match &request.user {
        Some(User::UserId(id)) => UserRef::Id(id),
        Some(User::Identifier(identifier)) => UserRef::Owner(raw_identifier(Some(identifier))),
        None => {
            let message = "a user is missing: set user_id or identifier";
            return Err(Error::invalid(Invalid::UserId, "user_id", message));
        }
    };
    Ok(HistoryRequest {
        user,
        from: optional_timestamp("from", request.from.as_ref())?,
        to: optional_timestamp("to", request.to.as_ref())?,
        kinds: event_kinds(&request.types)?,
        page_size: request.page_size,
        page_token: &request.page_token,
    })
}

/// The request for the history of a tenant.
pub fn tenant_history(
    request: &v1::ListTenantHistoryRequest,
) -> Result<TenantHistoryRequest<'_>, Error> {
    Ok(TenantHistoryRequest {
        from: optional_timestamp("from", request.from.as_ref())?,
        to: optional_timestamp("to", request.to.as_ref())?,
        page_size: request.page_size,
        page_token: &request.page_token,
    })
}

/// The request for the events of the users of a tenant.
pub fn events(request: &v1::ListEventsRequest) -> Result<EventsRequest<'_>, Error> {
    Ok(EventsRequest {
        from: optional_timestamp("from", request.from.as_ref())?,
        to: optional_timestamp("to", request.to.as_ref())?,
        kinds: event_kinds(&request.types)?,
        caller: &request.caller,
        operation_id: &request.operation_id,
        reason: &request.reason,
        page_size: request.page_size,
        page_token: &request.page_token,
    })
}

/// The owners of an identifier.
pub fn owners(owners: Owners) -> v1::ListOwnersResponse {
    let owner = |period: OwnerPeriod| v1::list_owners_response::Owner {
        user_id: period.user.map(|id| id.to_string()).unwrap_or_default(),
        from: Some(period.begin.into()),
        to: period.end.map(Into::into),
        identity: period.identity,
    };
    v1::ListOwnersResponse {
        identifier: Some(identifier_message(&owners.identifier)),
        owners: owners.periods.into_iter().map(owner).collect(),
        known_since: Some(owners.known_since.into()),
    }
}

/// The request for a watch.
pub fn watch(request: &v1::WatchRequest) -> Result<WatchRequest<'_>, Error> {
    let (users, resume_token) = (&request.user_ids[..], &*request.resume_token);
    Ok(WatchRequest { users, kinds: event_kinds(&request.types)?, resume_token })
}

/// The kinds of events.
pub fn event_kinds(numbers: &[i32]) -> Result<Vec<EventKind>, Error> {
    let kind = |number: &i32| {
        v1::EventType::try_from(*number)
            .ok()
            .and_then(read_event_type)
            .ok_or_else(|| Error::invalid(Invalid::Field, "types", "has an unknown type"))
    };
    numbers.iter().map(kind).collect()
}

/// The maximum age of an answer; zero if it is absent.
pub fn max_staleness(message: Option<&prost_types::Duration>) -> Result<Duration, Error> {
    let Some(age) = message else { return Ok(Duration::ZERO) };
    if !is_valid_duration(age) {
        let message =
            "must not be negative, or exceed 315,576,000,000 seconds or 999,999,999 nanos";
        return Err(Error::invalid(Invalid::Field, "max_staleness", message));
    }
    Ok(Duration::new(age.seconds.unsigned_abs(), age.nanos.unsigned_abs()))
}

/// The consistency of a read.
pub fn consistency(number: i32) -> Result<Consistency, Error> {
    match v1::Consistency::try_from(number) {
        Ok(v1::Consistency::Unspecified | v1::Consistency::Latest) => Ok(Consistency::Latest),
        Ok(v1::Consistency::Linearizable) => Ok(Consistency::Linearizable),
        Ok(v1::Consistency::Eventual) => Ok(Consistency::Eventual),
        Err(_) => Err(Error::invalid(Invalid::Field, "consistency", "is unknown")),
    }
}

/// The message for the result of a dry run.
pub fn normalization(
    normalization: Normalization,
    rules_version: u32,
    key: IdentityKey,
) -> v1::NormalizeIdentityResponse {
    let change = |change: Change| normalize_identity_response::Change {
        rule: change.rule.to_owned(),
        before: change.before,
        after: change.after,
    };

    v1::NormalizeIdentityResponse {
        identifier: Some(identifier_message(&normalization.identifier)),
        key: key.into_string(),
        skeleton: normalization.guard.map(|guard| guard.skeleton().to_owned()).unwrap_or_default(),
        rules_version,
        changes: normalization.changes.into_iter().map(change).collect(),
    }
}

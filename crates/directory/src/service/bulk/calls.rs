//! The calls that start, stop and resume bulk changes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use locality_uuid::LocalityId;

use crate::error::{Error, Invalid};
use crate::model::attribute;
use crate::model::attribute::Value;
use crate::model::bulk::change::{BulkAction, BulkChange, BulkList, MAX_KEPT};
use crate::model::tenant::Tenant;
use crate::mutation::MutationKind;
use crate::mutation::bulk::BulkStep;
use crate::mutation::read_set::MutationReport;
use crate::service::Directory;
use crate::service::context::{MutationCall, RequestContext};
use crate::service::mutate::mutation_log::MutationLog;
use crate::service::mutate::write::idempotency_key;
use crate::service::parse::parse_user_id;
use crate::service::purpose::{check_bulk_id, check_operation_id, check_operation_time};
use crate::service::transfer::undo::check_operation;
use crate::size;
use crate::tenant_cache::KnownTenant;

/// The users of a list, before those that are named again are dropped.
const MAX_LISTED: usize = 50_000;
/// The field with the operation that is undone.
const UNDONE: &str = "action.undo.operation_id";
/// The attributes that a bulk change sets and removes, and their bytes.
const MAX_ATTRIBUTES: usize = 100;
const MAX_ATTRIBUTE_BYTES: usize = 8 << 10;

/// A request to start a bulk change.
#[derive(Clone, Debug)]
pub struct StartBulkChange<'a> {
    /// Its id; empty to use that of the call's operation or request, or a new one.
    pub id: &'a str,
    /// The users.
    pub users: BulkUsers<'a>,
    /// The change.
    pub action: BulkAction,
    /// Whether to count what would happen.
    pub dry_run: bool,
}

/// The users of a bulk change.
#[derive(Clone, Copy, Debug)]
pub enum BulkUsers<'a> {
    /// Those that a filter matches; an empty one matches all.
    Matching(&'a str),
    /// Those with these ids.
    Listed(&'a [String]),
}

impl Directory {
    /// Starts a bulk change, which [`Directory::run_bulk_changes`] runs. Returns a present one with
    /// the same id and change.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::TenantNotFound`], [`Error::Bulk`], and those of
    /// [`crate::stores::Mutations::mutate`].
    pub async fn start_bulk_change(
        &self,
        call: MutationCall<'_>,
        request: StartBulkChange<'_>,
    ) -> Result<BulkChange, Error> {
        let context = &call.context;
        context.purpose.check_new(context.now.time)?;
        let id = bulk_id(context, request.id)?;
        check_action(&request)?;
        let (filter, users) = match request.users {
            BulkUsers::Matching(filter) => (filter, None),
            BulkUsers::Listed(ids) => ("", Some(read_list(ids)?)),
        };
        self.parse_filter(filter).await?;
        let known = self.tenant_to_change(&call).await?;
        if let BulkAction::Attributes(edits) = &request.action {
            known.policies.check_types(values(edits))?;
        }
        if let BulkAction::Undo(operation_id) = &request.action {
            check_operation(UNDONE, operation_id, &known)?;
            self.check_undone(&call, &id, operation_id, request.dry_run).await?;
        }

        let tenant = context.tenant.clone();
        let new = BulkChange {
            filter: filter.to_owned(),
            list: users.as_deref().map(BulkList::new),
            dry_run: request.dry_run,
            caller: context.caller.to_owned(),
            reason: context.purpose.reason.to_owned(),
            ..BulkChange::new(tenant.clone(), &id, request.action, context.now.time)
        };
        let step = BulkStep::Start(Box::new(new), users.unwrap_or_default());
        let started = self.bulk_call(call, &id, step).await?;
        self.bulk_started.notify_one();
        if let Err(error) = self.remove_surplus(&tenant, &started.id).await {
            let error = error.with_causes();
            tracing::warn!(%tenant, %error, "old bulk changes are kept until the next one starts");
        }
        Ok(started)
    }

    /// Checks that an operation is not a bulk change that runs, unless its undoing was started
    /// before. Otherwise nobody resumes it until the undoing begins.
    async fn check_undone(
        &self,
        call: &MutationCall<'_>,
        id: &str,
        operation_id: &str,
        dry_run: bool,
    ) -> Result<(), Error> {
        if id == operation_id {
            let rule = "is the id of the bulk change itself: an undoing has one of its own";
            return Err(Error::invalid(Invalid::Field, UNDONE, rule));
        }
        let (changes, tenant) = (&self.backend.bulk_changes, &call.context.tenant);
        let is_known = changes.bulk_change(tenant, id).await?.is_some();
        let undone = changes.bulk_change(tenant, operation_id).await?;
        if undone.is_some_and(|undone| !undone.dry_run && !is_known) {
            let call = MutationCall { dry_run, ..call.clone() };
            self.bulk_call(call, operation_id, BulkStep::Undo(Vec::new())).await?;
        }
        Ok(())
    }

    /// Stops a bulk change after the users whose turn it is, unless it has ended.
    ///
    /// # Errors
    /// [`Error::Bulk`], and those of [`crate::stores::Mutations::mutate`].
    pub async fn stop_bulk_change(
        &self,
        call: MutationCall<'_>,
        id: &str,
    ) -> Result<BulkChange, Error> {
        let step = BulkStep::Stop(call.context.caller.to_owned());
        self.bulk_call(call, id, step).await
    }

    /// Resumes a bulk change that stopped or failed, on behalf of the caller.
    ///
    /// # Errors
    /// [`Error::Bulk`], [`Error::TenantNotFound`], and
    /// those of [`crate::stores::Mutations::mutate`].
    pub async fn resume_bulk_change(
        &self,
        call: MutationCall<'_>,
        id: &str,
    ) -> Result<BulkChange, Error> {
        let step = BulkStep::Resume(call.context.caller.to_owned());
        let resumed = self.bulk_call(call, id, step).await?;
        self.bulk_started.notify_one();
        Ok(resumed)
    }

    /// Takes a step on behalf of a caller, and logs it. The id of the bulk change makes repeated
    /// calls safe, not that of the request.
    pub(in crate::service) async fn bulk_call(
        &self,
        call: MutationCall<'_>,
        id: &str,
        step: BulkStep,
    ) -> Result<BulkChange, Error> {
        check_id(id)?;
        let call =
            MutationCall { context: RequestContext { request_id: "", ..call.context }, ..call };
        let log = MutationLog::new(&call, None);
        let kind = MutationKind::Bulk(id.to_owned(), step);
        let mutation = self.mutation(call, kind, KnownTenant::default())?;
        let outcome = self.backend.mutations.mutate(mutation).await;
        log.write(&outcome);
        match outcome?.report {
            MutationReport::BulkChange(change) => Ok(*change),
            _ => Err(Error::Internal("a step of a bulk change without it".into())),
        }
    }

    /// Removes bulk changes at rest of a tenant that has more than it keeps, but not this one. The
    /// next start removes those that stay after a failure.
    async fn remove_surplus(&self, tenant: &Tenant, started: &str) -> Result<(), Error> {
        let kept = self.backend.bulk_changes.bulk_changes(tenant).await?;
        let surplus = kept.len().saturating_sub(MAX_KEPT);
        let now = self.now().time;
        let removable = kept.into_iter().filter(|change| change.is_at_rest(now));
        let others = removable.filter(|change| change.id != started).collect();
        for old in first_removed(others).into_iter().take(surplus) {
            self.remove_bulk_change(tenant, old.id).await?;
        }
        Ok(())
    }

    /// Removes a bulk change that has ended.
    pub(super) async fn remove_bulk_change(
        &self,
        tenant: &Tenant,
        id: String,
    ) -> Result<(), Error> {
        let kind = MutationKind::Bulk(id, BulkStep::Remove);
        let removal = self.own_mutation(tenant, KnownTenant::default(), kind);
        self.backend.mutations.mutate(removal).await.map(drop)
    }
}

/// Ended bulk changes in the order in which they make room: those of the caller who has the most
/// come first, so that nobody pushes out those of others.
fn first_removed(mut ended: Vec<BulkChange>) -> Vec<BulkChange> {
    let mut counts = BTreeMap::<String, usize>::new();
    for change in &ended {
        *counts.entry(change.caller.clone()).or_default() += 1;
    }
    ended.sort_by_key(|change| (Reverse(counts.get(&change.caller).copied()), change.end_time));
    ended
}

/// Checks the id of a bulk change.
pub(super) fn check_id(id: &str) -> Result<(), Error> {
    if id.is_empty() {
        return Err(Error::invalid(Invalid::Field, "bulk_id", "is missing"));
    }
    check_operation_id("bulk_id", id)
}

/// The id of a new bulk change: that of the request, of its operation, or of the call.
fn bulk_id(context: &RequestContext<'_>, wanted: &str) -> Result<String, Error> {
    // The request id must be a UUID even if it is not used.
    idempotency_key(context)?;
    let request_id = context.request_id.parse::<LocalityId>().map(|id| id.to_string());
    let request_id = request_id.unwrap_or_default();
    let candidates = [
        ("bulk_id", wanted),
        ("polynym-operation-id", context.purpose.operation_id),
        ("request_id", &request_id),
    ];
    let Some((field, id)) = candidates.into_iter().find(|(_, id)| !id.is_empty()) else {
        return new_id(context);
    };
    check_operation_id(field, id)?;
    check_bulk_id(field, id)?;
    check_operation_time(field, id, context.now.time)?;
    Ok(id.to_owned())
}

/// A UUID with the time (version 7, RFC 9562), by which undoing the bulk change skips users that
/// changed before.
fn new_id(context: &RequestContext<'_>) -> Result<String, Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Error::Internal(Box::new(error)))?;
    let millis = context.now.earliest().as_millis().to_be_bytes();
    bytes[..6].copy_from_slice(&millis[2..]);
    Ok(LocalityId::from(with_version(bytes, 7)).to_string())
}

/// The bytes with the version and the variant of a UUID.
pub(super) fn with_version(mut bytes: [u8; 16], version: u8) -> [u8; 16] {
    bytes[6] = (bytes[6] & 0x0f) | (version << 4);
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    bytes
}

/// The listed users, each once.
fn read_list(ids: &[String]) -> Result<Arc<[LocalityId]>, Error> {
    if ids.is_empty() || ids.len() > MAX_LISTED {
        let rule = format!("takes 1 to {MAX_LISTED} users");
        return Err(Error::invalid(Invalid::Field, "users.user_ids", rule));
    }
    let (mut users, mut known) = (Vec::with_capacity(ids.len()), HashSet::new());
    for (n, text) in ids.iter().enumerate() {
        let id = text.parse().or_else(|_| {
            let field = format!("users.user_ids[{n}]");
            parse_user_id(&field, text)
        })?;
        if known.insert(id) {
            users.push(id);
        }
    }
    Ok(users.into())
}

fn check_action(request: &StartBulkChange<'_>) -> Result<(), Error> {
    match (&request.action, request.users) {
        (BulkAction::Undo(operation_id), BulkUsers::Matching("")) => {
            check_operation_id(UNDONE, operation_id)
        }
        (BulkAction::Undo(_), _) => {
            let rule = "finds its users: name neither a filter nor users";
            Err(Error::invalid(Invalid::Field, "action.undo", rule))
        }
        (BulkAction::Attributes(edits), _) => check_edits(edits),
        _ => Ok(()),
    }
}

fn check_edits(edits: &BTreeMap<String, Option<Value>>) -> Result<(), Error> {
    let invalid = |rule: String| Error::invalid(Invalid::Field, "action.attributes", rule);
    if edits.is_empty() {
        return Err(invalid("name an attribute to set or to remove".to_owned()));
    }
    if edits.len() > MAX_ATTRIBUTES {
        return Err(invalid(format!("at most {MAX_ATTRIBUTES} attributes")));
    }

    attribute::check_names(edits.keys(), "action.attributes")?;
    let set = values(edits).map(|(name, value)| (name.clone(), value.clone())).collect();
    attribute::check(&set, "action.attributes.set")?;
    let names: usize = edits.keys().map(String::len).sum();
    if names + size::attributes(&set) > MAX_ATTRIBUTE_BYTES {
        let kib = MAX_ATTRIBUTE_BYTES >> 10;
        return Err(invalid(format!("at most {kib} KiB of names and values")));
    }
    Ok(())
}

/// The attributes that get a value.
fn values(edits: &BTreeMap<String, Option<Value>>) -> impl Iterator<Item = (&String, &Value)> {
    edits.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::bulk::change::BulkState;
    use crate::timestamp::Timestamp;

    #[test]
    fn the_caller_with_the_most_records_makes_room() {
        let ended = |caller: &str, end: i64| {
            let (action, now) = (BulkAction::Delete, Timestamp::default());
            let mut change = BulkChange::new(Tenant::DEFAULT, "bulk-1", action, now);
            caller.clone_into(&mut change.caller);
            change.end(BulkState::Completed, "", Timestamp::from_millis(end));
            change
        };
        let kept = vec![ended("one", 1), ended("busy", 3), ended("busy", 2)];
        let removed: Vec<_> = first_removed(kept)
            .into_iter()
            .map(|change| (change.caller.clone(), change.end_time.unwrap_or_default().as_millis()))
            .collect();
        assert_eq!(removed, [("busy".into(), 2), ("busy".into(), 3), ("one".into(), 1)]);
    }
}

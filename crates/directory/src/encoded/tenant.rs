//! The encoded forms of tenants, in stores and in the API's messages.

use std::collections::BTreeSet;

use prost::{DecodeError, Message};
use prost_types::Timestamp as ProtoTimestamp;
use xxhash_rust::xxh3::xxh3_64;

use crate::encoded::decode::{read_tenant, read_time};
use crate::encoded::definition::{definition_messages, read_definition};
use crate::encoded::encode::time_message;
use crate::encoded::error::WireError;
use crate::model::policies::{self, HistoryExtension, POLICIES, Policies, read_span, span};
use crate::model::tenant_record::{Deletion, TenantRecord};
use crate::model::unknown::{Unknown, messages, write_message};
use polynym_identifier::Kind;
use polynym_proto::v1;

/// The field number of a tenant's policies, and the last field of a tenant that this program
/// supports.
const POLICIES_FIELD: u32 = 2;
const LAST_FIELD: u32 = 8;
/// The field number of the creation time of an imported tenant in its stored form, where the field
/// `create_time` has the time at which this store created it.
const IMPORTED_CREATE_TIME: u32 = 8;

/// The stored form of a tenant. Omits default retentions and limits, so that the etags of tenants
/// from before these policies stay the same.
pub fn encode_tenant(tenant: &TenantRecord) -> Vec<u8> {
    let mut message = message(tenant);
    message.create_time = Some(time_message(tenant.since));
    if let Some(policies) = &mut message.policies {
        POLICIES.iter().for_each(|policy| policy.omit_default(policies));
    }
    let mut bytes = message.encode_to_vec();
    let [unknown, of_policies] = &tenant.unknown;
    if !of_policies.is_empty() {
        // A decoder merges a field that occurs twice.
        let mut policies = Vec::new();
        of_policies.write(&mut policies);
        write_message(POLICIES_FIELD, &policies, &mut bytes);
    }
    if tenant.create_time != tenant.since {
        let time = time_message(tenant.create_time).encode_to_vec();
        write_message(IMPORTED_CREATE_TIME, &time, &mut bytes);
    }
    unknown.write(&mut bytes);
    bytes
}

/// Decodes the output of [`encode_tenant`].
pub fn decode_tenant(bytes: &[u8]) -> Result<TenantRecord, WireError> {
    let damaged = |error: DecodeError| WireError(error.to_string());
    let message = v1::Tenant::decode(bytes).map_err(damaged)?;
    let since = read_time(message.create_time);
    let imported = messages(IMPORTED_CREATE_TIME, bytes)
        .last()
        .map(ProtoTimestamp::decode)
        .transpose()
        .map_err(damaged)?;
    Ok(TenantRecord {
        name: read_tenant(&message.tenant)?,
        policies: read_policies(message.policies.unwrap_or_default()),
        create_time: imported.map_or(since, |time| read_time(Some(time))),
        since,
        update_time: read_time(message.update_time),
        deletion: message
            .delete_time
            .map(|time| Deletion { time: read_time(Some(time)), with_users: message.delete_users }),
        unknown: [
            Unknown::after(LAST_FIELD, bytes),
            Unknown::within(POLICIES_FIELD, policies::LAST_FIELD, bytes),
        ],
    })
}

/// A tenant as the API's message.
pub fn tenant_message(tenant: &TenantRecord) -> v1::Tenant {
    v1::Tenant { etag: tenant.etag(), ..message(tenant) }
}

fn message(tenant: &TenantRecord) -> v1::Tenant {
    v1::Tenant {
        tenant: tenant.name.as_str().to_owned(),
        policies: Some(policies_message(&tenant.policies)),
        create_time: Some(time_message(tenant.create_time)),
        update_time: Some(time_message(tenant.update_time)),
        etag: String::new(),
        delete_time: tenant.deletion.map(|deletion| time_message(deletion.time)),
        delete_users: tenant.deletion.is_some_and(|deletion| deletion.with_users),
    }
}

/// Policies as the API's message.
pub fn policies_message(policies: &Policies) -> v1::Policies {
    let hold = |kind| policies.holds.get(&kind).copied().map(span);
    let mut message = v1::Policies {
        holds: Some(v1::Holds {
            email: hold(Kind::Email),
            handle: hold(Kind::Handle),
            phone: hold(Kind::Phone),
            social: hold(Kind::Social),
            url: hold(Kind::Url),
        }),
        reserved_handles: policies.reserved_handles.as_ref().map(reserved),
        phone_regions: policies.phone_regions.clone(),
        attribute_definitions: definition_messages(&policies.attributes),
        history_since_time: policies.history_since.map(time_message),
        history_change_time: policies.history_change.map(time_message),
        history_extend_time: policies.history_extension.map(|longer| time_message(longer.time)),
        history_former_retention: policies.history_extension.map(|longer| span(longer.former)),
        ..v1::Policies::default()
    };
    POLICIES.iter().for_each(|policy| policy.write(policies, &mut message));
    message
}

/// The names of the fields that differ.
pub fn differing_policies(one: &v1::Policies, other: &v1::Policies) -> Vec<String> {
    let mut differs = vec![("holds", one.holds != other.holds)];
    for policy in POLICIES {
        if policy.path() == "history_retention" {
            let definitions = one.attribute_definitions != other.attribute_definitions;
            differs.push(("reserved_handles", one.reserved_handles != other.reserved_handles));
            differs.push(("phone_regions", one.phone_regions != other.phone_regions));
            differs.push(("attribute_definitions", definitions));
        }
        differs.push((policy.path(), policy.differs(one, other)));
    }
    differs.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name.to_owned()).collect()
}

fn reserved(handles: &BTreeSet<String>) -> v1::ReservedHandles {
    v1::ReservedHandles { handles: handles.iter().cloned().collect() }
}

/// The policies of a message.
pub fn read_policies(message: v1::Policies) -> Policies {
    let mut policies = Policies::default();
    POLICIES.iter().for_each(|policy| policy.read(&message, &mut policies));
    let v1::Holds { email, handle, phone, social, url } = message.holds.unwrap_or_default();
    let holds = [
        (Kind::Email, email),
        (Kind::Handle, handle),
        (Kind::Phone, phone),
        (Kind::Social, social),
        (Kind::Url, url),
    ];
    let holds = holds.into_iter().filter_map(|(kind, time)| Some((kind, read_span(time?))));
    let handles = message.reserved_handles.map(|reserved| reserved.handles.into_iter().collect());
    let definitions = message.attribute_definitions.into_iter();
    let definitions = definitions.filter_map(|definition| {
        let read = read_definition(&definition)?;
        Some((definition.name, read))
    });
    Policies {
        holds: holds.collect(),
        reserved_handles: handles,
        phone_regions: message.phone_regions,
        attributes: definitions.collect(),
        history_since: message.history_since_time.map(|time| read_time(Some(time))),
        history_change: message.history_change_time.map(|time| read_time(Some(time))),
        history_extension: message.history_extend_time.map(|time| HistoryExtension {
            time: read_time(Some(time)),
            former: message.history_former_retention.map(read_span).unwrap_or_default(),
        }),
        ..policies
    }
}

impl TenantRecord {
    /// A hash of the visible part of the tenant, as 16 hex digits.
    pub fn etag(&self) -> String {
        let visible = Self { since: self.create_time, ..self.clone() };
        format!("{:016x}", xxh3_64(&visible.encode()))
    }

    /// The stored form.
    pub fn encode(&self) -> Vec<u8> {
        encode_tenant(self)
    }

    /// Decodes the output of [`TenantRecord::encode`].
    ///
    /// # Errors
    /// [`WireError`] for any other input.
    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        decode_tenant(bytes)
    }
}

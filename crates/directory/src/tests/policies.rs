//! The stored bytes of policies and the hashes of requests that change them, which must stay.

use std::collections::BTreeSet;
use std::time::Duration;

use polynym_identifier::Kind;
use prost_types::FileDescriptorSet;
use xxhash_rust::xxh3::xxh3_64;

use super::*;
use crate::encoded::tenant::{differing_policies, policies_message};
use crate::model::attribute_definition::{AttributeDefinition, DefinitionUpdate};
use crate::model::policies::{LAST_FIELD, POLICIES, Policies, PolicyUpdate};
use crate::model::tenant_record::TenantRecord;
use crate::mutation::TenantChange;
use crate::service::mutate::request_hash::request_hash;

fn hours(count: u64) -> Duration {
    Duration::from_secs(count * 3_600)
}

/// Every policy with a value of its own.
fn all() -> PolicyUpdate {
    let level = ("level".to_owned(), AttributeDefinition { indexed: true, ..Default::default() });
    PolicyUpdate {
        holds: [(Kind::Email, hours(1)), (Kind::Url, hours(2))].into(),
        hide_unverified: Some(true),
        verified_wins: Some(true),
        phone_takeover_after: Some(hours(3)),
        keep_primary: Some(true),
        keep_last: Some(true),
        allow_lookalikes: Some(true),
        restore_window: Some(hours(4)),
        undo_window: Some(hours(5)),
        reserved_handles: Some(Some(["joe".to_owned()].into())),
        phone_regions: None,
        attributes: DefinitionUpdate { replace: true, definitions: [level].into() },
        history_retention: Some(hours(6)),
        inbox_retention: Some(hours(7)),
        inbox_limit: Some(8),
        rule_notices: Some(true),
    }
}

/// The hash of a request with an update, and that of a tenant with it as stored.
fn hashes(update: PolicyUpdate) -> [u64; 2] {
    let now = Timestamp::from_millis(2_000_000_000_000);
    let mut tenant = TenantRecord::new(Tenant::parse("acme").unwrap(), now);
    update.apply(&mut tenant.policies, now);
    let hash = request_hash("", &MutationKind::Tenant(TenantChange::Set(update)));
    [hash, xxh3_64(&tenant.encode())]
}

#[test]
fn bytes_and_hashes_stay() {
    let zero = PolicyUpdate {
        phone_takeover_after: Some(Duration::ZERO),
        restore_window: Some(Duration::ZERO),
        undo_window: Some(Duration::ZERO),
        history_retention: Some(Duration::ZERO),
        inbox_retention: Some(Duration::ZERO),
        verified_wins: Some(false),
        rule_notices: Some(false),
        reserved_handles: Some(None),
        ..PolicyUpdate::default()
    };
    assert_eq!(
        hashes(PolicyUpdate::default()),
        [9_717_251_570_594_278_613, 11_998_558_266_894_751_305]
    );
    assert_eq!(hashes(all()), [7_785_764_353_045_639_990, 10_991_496_662_168_420_620]);
    assert_eq!(hashes(zero), [17_677_818_216_424_527_801, 7_433_842_203_308_135_441]);
}

#[test]
fn every_policy_is_read_back_and_named_if_it_differs() {
    let now = Timestamp::from_millis(2_000_000_000_000);
    let (before, mut after) = (Policies::default(), Policies::default());
    let mut update = all();
    update.phone_regions = Some(vec!["DE".to_owned(), "AT".to_owned()]);
    for definition in update.attributes.definitions.values_mut() {
        (definition.evidence, definition.find) = (true, true);
    }
    update.apply(&mut after, now);
    let tenant = TenantRecord {
        policies: after.clone(),
        ..TenantRecord::new(Tenant::parse("acme").unwrap(), now)
    };
    assert_eq!(TenantRecord::decode(&tenant.encode()).unwrap(), tenant);
    let [before, after] = [before, after].map(|policies| policies_message(&policies));
    let names = [
        "holds",
        "hide_unverified",
        "verified_wins",
        "phone_takeover_after",
        "keep_primary_identity",
        "keep_last_identity",
        "allow_lookalikes",
        "restore_window",
        "undo_window",
        "reserved_handles",
        "phone_regions",
        "attribute_definitions",
        "history_retention",
        "inbox_retention",
        "inbox_limit",
        "rule_notices",
    ];
    assert_eq!(differing_policies(&before, &after), names);
}

/// The API's message has a field for each row, and rows have numbers of their own.
#[test]
fn the_table_has_the_policies_of_the_api() {
    let set = <FileDescriptorSet as prost::Message>::decode(polynym_proto::DESCRIPTORS).unwrap();
    let mut messages = set.file.into_iter().flat_map(|file| file.message_type);
    let message = messages.find(|message| message.name() == "Policies").unwrap();
    let numbers = message.field.iter().map(|field| field.number() as u32);
    assert_eq!(numbers.max(), Some(LAST_FIELD));
    let others = [
        "holds",
        "reserved_handles",
        "phone_regions",
        "attribute_definitions",
        "history_since_time",
        "history_change_time",
        "history_extend_time",
        "history_former_retention",
    ];
    let names = message.field.iter().map(|field| field.name());
    let fields: BTreeSet<_> = names.filter(|name| !others.contains(name)).collect();
    assert_eq!(fields, POLICIES.iter().map(|policy| policy.path()).collect());
    let numbers: Vec<_> = POLICIES.iter().filter_map(|policy| policy.number()).collect();
    let distinct: BTreeSet<_> = numbers.iter().copied().collect();
    assert!(distinct.len() == numbers.len() && distinct.is_disjoint(&[2, 3, 8].into()));
}

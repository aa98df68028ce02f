//! The metrics of a server. docs/metrics.md describes them.

use polynym::grpc;
use polynym::readiness::READY;
use polynym::telemetry::Metric;
use polynym_access::{CREDENTIAL_EXPIRES, CREDENTIALS_BROKEN};
use polynym_deliver::metrics as delivery;
use polynym_directory::{CLOCK_AHEAD, DISPLACED};
use polynym_embedded as embedded;
use polynym_layers::coalesce;
use polynym_layers::lookup_cache;
use polynym_mongodb as mongo;
use polynym_store_common::operations;
use polynym_store_common::unreadable::{
    UNREADABLE, UNREADABLE_BULK, UNREADABLE_DELIVERIES, UNREADABLE_RECORDS,
};
use polynym_store_common::version_gauges;
use polynym_transport as transport;

use super::uri_file::URI_BROKEN;

/// Counters without labels.
pub const COUNTERS: [Metric; 9] = [
    delivery::DEAD_LETTERS,
    delivery::PAUSES,
    DISPLACED,
    transport::PANICS,
    UNREADABLE,
    UNREADABLE_BULK,
    UNREADABLE_DELIVERIES,
    UNREADABLE_RECORDS,
    embedded::DROPPED_SNAPSHOTS,
];

/// Metrics with labels, gauges and histograms.
pub const OTHERS: [Metric; 37] = [
    delivery::ATTEMPTS,
    delivery::RUNNING,
    READY,
    transport::CALLS,
    transport::CALL_SECONDS,
    transport::REJECTED,
    transport::CALLS_IN_FLIGHT,
    transport::PERMITS,
    transport::CONNECTIONS,
    transport::HANDSHAKES,
    transport::CERTIFICATE_BROKEN,
    transport::CERTIFICATE_DAYS_LEFT,
    CREDENTIALS_BROKEN,
    CREDENTIAL_EXPIRES,
    CLOCK_AHEAD,
    grpc::RESOLVE_READS,
    grpc::WATCHES,
    grpc::WATCH_EVENTS,
    operations::OPERATIONS,
    operations::SECONDS,
    version_gauges::SCHEMA_VERSION,
    version_gauges::RULES_VERSION,
    coalesce::CALL_ITEMS,
    lookup_cache::LOOK_UPS,
    lookup_cache::AGE,
    lookup_cache::BYTES,
    embedded::WRITE_QUEUE,
    embedded::SYNC_SECONDS,
    embedded::SYNC_MUTATIONS,
    embedded::FILE_BYTES,
    embedded::FILE_ALLOCATED_BYTES,
    embedded::DISK_BYTES,
    embedded::DISK_FREE_BYTES,
    mongo::POOL_CONNECTIONS,
    mongo::PARTLY_UNREACHABLE,
    mongo::BECAME_SHARD,
    URI_BROKEN,
];

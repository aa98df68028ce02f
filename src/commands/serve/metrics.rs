//! The metrics of a server. docs/metrics.md describes them.

use polynym::access::CREDENTIALS_BROKEN;
use polynym::directory::{CLOCK_AHEAD, DISPLACED};
use polynym::store::{coalesce, embedded, lookup_cache, measured, mongo};
use polynym::telemetry::Metric;
use polynym::{grpc, transport};

/// Counters without labels.
pub const COUNTERS: [Metric; 2] = [DISPLACED, transport::PANICS];

/// Metrics with labels, gauges and histograms.
pub const OTHERS: [Metric; 27] = [
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
    CLOCK_AHEAD,
    grpc::RESOLVE_READS,
    grpc::WATCHES,
    grpc::WATCH_EVENTS,
    measured::OPERATIONS,
    measured::SECONDS,
    measured::SCHEMA_VERSION,
    measured::RULES_VERSION,
    coalesce::CALL_ITEMS,
    lookup_cache::LOOK_UPS,
    lookup_cache::AGE,
    lookup_cache::BYTES,
    embedded::WRITE_QUEUE,
    embedded::SYNC_SECONDS,
    embedded::SYNC_MUTATIONS,
    mongo::POOL_CONNECTIONS,
    mongo::PARTLY_UNREACHABLE,
];

//! The metrics of a server. docs/metrics.md lists them with what they are for.

use polynym::access::CREDENTIALS_BROKEN;
use polynym::directory::{CLOCK_AHEAD, DISPLACED};
use polynym::store::{coalesce, embedded, measured, mongo};
use polynym::telemetry::Metric;
use polynym::{grpc, transport};

/// Counters without labels.
pub const COUNTERS: [Metric; 2] = [DISPLACED, transport::PANICS];

/// The others.
pub const OTHERS: [Metric; 22] = [
    transport::CALLS,
    transport::CALL_SECONDS,
    transport::REJECTED,
    transport::UNDER_WAY,
    transport::PERMITS,
    transport::CONNECTIONS,
    transport::HANDSHAKES,
    transport::CERTIFICATE_BROKEN,
    transport::CERTIFICATE_DAYS_LEFT,
    CREDENTIALS_BROKEN,
    CLOCK_AHEAD,
    grpc::RESOLVE_READS,
    measured::OPERATIONS,
    measured::SECONDS,
    measured::SCHEMA_VERSION,
    measured::RULES_VERSION,
    coalesce::CALL_ITEMS,
    embedded::WRITE_QUEUE,
    embedded::SYNC_SECONDS,
    embedded::SYNC_MUTATIONS,
    mongo::POOL_CONNECTIONS,
    mongo::PARTLY_UNREACHABLE,
];

//! The parts that both stores share: integrity checks, ids of attributes, hints of owners, found
//! users, recent items by tenant, unreadable records, unsupported stores, the gauges of the stored
//! versions, and the metrics and spans of operations.

pub mod attribute_names;
pub mod integrity;
pub mod operations;
pub mod owner_hints;
pub mod searched;
pub mod spans;
pub mod tenant_window;
pub mod unreadable;
pub mod unsupported;
pub mod version_gauges;

//! Users, tenants and claims as data, with the rules for single values.

pub mod attribute;
pub mod attribute_definition;
pub mod bulk {
    //! Bulk changes.

    pub mod change;
    pub mod lease;
    pub mod progress;
    pub mod reads;
}
pub mod claim;
pub mod delivery {
    //! Deliveries of events to receivers.

    pub mod held;
    pub mod log;
    pub mod reads;
    pub mod record;
    pub mod step;
}
pub mod event;
pub mod imported_user;
pub mod merge_report;
pub mod new_user;
pub mod notice;
pub mod ownership;
pub mod policies;
pub mod policy_field;
pub mod policy_table;
pub mod record;
pub mod reserved;
pub mod shortening;
pub mod tenant;
pub mod tenant_event;
pub mod tenant_record;
pub mod unknown;
pub mod user;

//! Scenarios that tests of several programs run, each on stores of its own.

pub mod bulk;
pub mod changes;
pub mod clocks;
pub mod counters;
pub mod damage;
pub mod damaged_attributes;
pub mod damaged_histories;
pub mod deliveries;
pub mod delivering;
pub mod exports;
pub mod histories;
pub mod inbox;
pub mod operations;
pub mod store_command;
pub mod tenant_history;
pub mod transfer;
pub mod unreadable;
pub mod usage;
pub mod walkthrough;
pub mod watching;

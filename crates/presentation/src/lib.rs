//! The texts that people read and type: the words of states, actions, events, policies and advice,
//! and durations, times and counts. One table an idea, which the command line, the console and the
//! files of tables share. Nothing here does I/O.

pub mod action;
pub mod advice;
pub mod attribute;
pub mod blocker;
pub mod change;
pub mod count;
pub mod duration;
pub mod event;
pub mod find;
pub mod pasted;
pub mod policy;
pub mod state;
pub mod tenant_event;
pub mod time;

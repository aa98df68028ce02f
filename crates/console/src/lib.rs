//! The console: web pages for the people who administer a directory.
//!
//! It is a client of the API by a connection within the program, so that access, limits and usage
//! are those of every other caller. Each page is a plain link or form first; scripts add to it.

#![forbid(unsafe_code)]

mod advice;
mod assets;
mod change;
mod console;
mod context;
mod cookies;
mod download;
mod failure;
mod form;
mod frame;
mod imports;
mod middleware;
mod pages;
mod prelude;
mod render;
mod requests;
mod samples;
mod security;
mod session;
mod short_id;
mod site;
mod strangers_form;
mod views;
mod visit;
mod words;

pub use console::Options;
pub use samples::Metrics;
pub use site::Console;

//! Reads the metrics of a server in the text format of Prometheus: the values of a scrape, and the
//! figures of the interval between two.

#![forbid(unsafe_code)]

mod figures;
mod scrape;

pub use figures::{Figures, Method, Times};
pub use scrape::{Scrape, Series};

//! One run: how much of everything, and what has been found so far.

use std::sync::Arc;
use std::time::Duration;

use crate::Result;
use crate::calls::{Sample, Work, measure};
use crate::place::Place;
use crate::report::{Rate, Report};

pub const CONCURRENCIES: [usize; 4] = [1, 16, 64, 256];

pub struct Bench {
    pub users: u64,
    pub rounds: usize,
    /// Of one measurement.
    pub time: Duration,
    pub report: Report,
}

/// One side of a comparison.
pub struct Contender {
    /// The servers that it uses, such as `3 shards`.
    pub place: String,
    pub what: &'static str,
    pub work: Arc<dyn Work>,
}

impl Contender {
    pub fn new(place: impl Into<String>, what: &'static str, work: impl Work) -> Self {
        Self { place: place.into(), what, work: Arc::new(work) }
    }
}

impl Bench {
    /// Measures the contenders at each concurrency, one after the other, round by round. `users` is
    /// how many are loaded.
    pub async fn compare(
        &mut self,
        comparison: &'static str,
        servers: &Place,
        users: u64,
        concurrencies: &[usize],
        contenders: &[Contender],
    ) -> Result<()> {
        for round in 1..=self.rounds {
            eprintln!("{comparison}, round {round}");
            for &concurrency in concurrencies {
                for contender in contenders {
                    let rate =
                        self.rate(comparison, servers, users, concurrency, contender).await?;
                    self.report.note(rate);
                }
            }
        }
        Ok(())
    }

    async fn rate(
        &self,
        comparison: &'static str,
        servers: &Place,
        users: u64,
        concurrency: usize,
        contender: &Contender,
    ) -> Result<Rate> {
        let before = servers.cpu_us().await?;
        let Sample { per_second, p99_us, calls } =
            measure(&contender.work, concurrency, self.time).await?;
        let server_us = (servers.cpu_us().await? - before) / calls as f64;
        let (place, what) = (contender.place.clone(), contender.what);
        let (per_second, p99_us, server_us) = (vec![per_second], vec![p99_us], vec![server_us]);
        Ok(Rate { comparison, place, what, concurrency, users, per_second, p99_us, server_us })
    }
}

//! Operations that are undone in random histories, compared with a model that remembers what each
//! user was before each change.

mod by_bulk;
mod check;
mod model;
mod scene;
mod steps;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::fixture::Fixture;
use crate::fixture::assertions::ensure;
use crate::fixture::factory::{Failure, StoreFactory};
use scene::History;
pub use scene::Tally;

/// The histories of a case.
const SAMPLE: u64 = 4;
/// The age of the histories at their beginning; they advance by days.
const DAYS_AGO: Duration = Duration::from_secs(250 * 24 * 60 * 60);

/// The case of the suite: a sample of histories.
///
/// # Errors
/// A [`Failure`] with the history and the difference.
pub async fn undone_operations_agree_with_a_model(f: Fixture) -> Result<(), Failure> {
    let tally = run(&f, 0..SAMPLE).await?;
    ensure(tally.is_wild(), format!("the histories were too tame: {tally:?}"))
}

/// Runs the histories of these seeds on one store. They lie in the past, so that a later check of
/// the store sees what has expired: for stores that remove nothing by their own clocks.
///
/// # Errors
/// A [`Failure`] with the seed and the difference.
pub async fn agree(factory: Arc<dyn StoreFactory>, seeds: Range<u64>) -> Result<Tally, Failure> {
    let f = Fixture::new(factory).await?;
    f.begin_before(DAYS_AGO);
    run(&f, seeds).await
}

async fn run(f: &Fixture, seeds: Range<u64>) -> Result<Tally, Failure> {
    let mut tally = Tally::default();
    for seed in seeds {
        let run = History::new(f, seed)?.run().await;
        tally.add(&run.map_err(|failure| format!("history {seed}: {failure}"))?);
    }
    Ok(tally)
}

impl History<'_> {
    async fn run(mut self) -> Result<Tally, Failure> {
        self.create_tenant().await?;
        for _ in 0..8 + self.random.below(16) {
            self.step().await?;
        }
        for _ in 0..6 {
            let operation = self.random.one_of(&self.operations);
            self.undo_with_blockers(&operation).await.map_err(|failure| {
                format!(
                    "undoing {operation}: {failure}\n{}",
                    self.histories.summary(&self.users, self.f.now())
                )
            })?;
            for _ in 0..self.random.below(3) {
                self.step().await?;
            }
        }
        Ok(self.tally)
    }
}

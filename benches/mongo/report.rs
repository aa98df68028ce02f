//! The measurements, as JSON for the page and as lines to watch.

use serde::Serialize;

/// Everything that one run found.
#[derive(Serialize)]
pub struct Report {
    pub users: u64,
    pub rounds: usize,
    pub seconds: f64,
    pub server: Option<String>,
    /// Whether the router of the cluster is MongoDB's own.
    pub mongos: Option<bool>,
    pub rates: Vec<Rate>,
    pub sizes: Vec<Size>,
    pub spreads: Vec<Spread>,
}

/// The rate of one kind of call, round by round.
#[derive(Serialize)]
pub struct Rate {
    pub comparison: &'static str,
    pub place: String,
    pub what: &'static str,
    pub concurrency: usize,
    pub users: u64,
    pub per_second: Vec<f64>,
    pub p99_us: Vec<f64>,
    /// Processor time of the servers that hold data, for one call.
    pub server_us: Vec<f64>,
}

/// The size of a collection.
#[derive(Serialize)]
pub struct Size {
    pub what: &'static str,
    pub documents: u64,
    /// As the server takes them in.
    pub data_bytes: f64,
    /// Of the compressed files.
    pub disk_bytes: f64,
    pub index_bytes: f64,
}

/// The shards of documents with one kind of id.
#[derive(Serialize)]
pub struct Spread {
    pub ids: &'static str,
    pub minutes: u64,
    /// For each slice of that time, how many went to each shard.
    pub slices: Vec<Vec<u64>>,
    /// Of all documents.
    pub index_bytes: f64,
}

impl Report {
    pub fn new(users: u64, rounds: usize, seconds: f64) -> Self {
        let (rates, sizes, spreads) = (Vec::new(), Vec::new(), Vec::new());
        Self { users, rounds, seconds, server: None, mongos: None, rates, sizes, spreads }
    }

    /// Takes down a measurement of a round.
    pub fn note(&mut self, rate: Rate) {
        let Rate { comparison, place, what, concurrency, .. } = &rate;
        let (per_second, p99, cpu) =
            (last(&rate.per_second), last(&rate.p99_us), last(&rate.server_us));
        eprintln!(
            "  {comparison}, {place}, {what} at {concurrency}: {per_second:.0} /s, p99 {p99:.0} \
             us, {cpu:.0} us of the server"
        );
        let same = |had: &&mut Rate| {
            (had.comparison, &had.place, had.what, had.concurrency)
                == (rate.comparison, &rate.place, rate.what, rate.concurrency)
        };
        match self.rates.iter_mut().find(same) {
            Some(had) => {
                had.per_second.extend(rate.per_second);
                had.p99_us.extend(rate.p99_us);
                had.server_us.extend(rate.server_us);
            }
            None => self.rates.push(rate),
        }
    }

    /// A line for each measurement, with the medians of its rounds.
    pub fn print(&self) {
        println!(
            "{:10} {:20} {:36} {:>4} {:>9} {:>9} {:>9}",
            "", "", "median", "at", "/s", "p99 us", "server us"
        );
        for rate in &self.rates {
            let [per_second, p99, cpu] =
                [&rate.per_second, &rate.p99_us, &rate.server_us].map(|f| median(f));
            let Rate { comparison, place, what, concurrency, .. } = rate;
            println!(
                "{comparison:10} {place:20} {what:36} {concurrency:4} {per_second:9.0} {p99:9.0} \
                 {cpu:9.1}"
            );
        }
        for Size { what, documents, data_bytes, disk_bytes, index_bytes } in &self.sizes {
            let of_one = |bytes: &f64| bytes / *documents as f64;
            let [data, disk, index] = [data_bytes, disk_bytes, index_bytes].map(of_one);
            println!(
                "bytes      {what:57} {data:9.1} data, {disk:.1} on disk, {index:.1} of index"
            );
        }
        for Spread { ids, slices, .. } in &self.spreads {
            println!("locality   {ids:20} {slices:?}");
        }
    }
}

fn last(figures: &[f64]) -> f64 {
    figures.last().copied().unwrap_or(f64::NAN)
}

fn median(figures: &[f64]) -> f64 {
    let mut figures = figures.to_vec();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

//! Nanoseconds per id, on one and two threads, beside `uuid`'s versions 4 and 7.
//!
//! `cargo bench -p locality-uuid`. With two threads a figure is the time that each thread takes
//! for one id while the other draws from the same generator.

use std::sync::LazyLock;

use divan::Bencher;
use locality_uuid::{Generator, LocalityId, Mode, TEXT_LEN};
use uuid::Uuid;

/// Ids in a sample: enough for two threads to run side by side and not one after the other.
const IDS: u32 = 200_000;
const SAMPLES: u32 = 25;

static VARIABLE: LazyLock<Generator> = LazyLock::new(|| Generator::new(Mode::Variable));
static SEQUENTIAL: LazyLock<Generator> = LazyLock::new(|| Generator::new(Mode::Sequential));

fn main() {
    divan::main();
}

#[divan::bench(threads = [1, 2], sample_count = SAMPLES, sample_size = IDS)]
fn locality_variable(bencher: Bencher) {
    let ids = &*VARIABLE;
    bencher.bench(|| ids.next_id());
}

#[divan::bench(threads = [1, 2], sample_count = SAMPLES, sample_size = IDS)]
fn locality_sequential(bencher: Bencher) {
    let ids = &*SEQUENTIAL;
    bencher.bench(|| ids.next_id());
}

#[divan::bench(threads = [1, 2], sample_count = SAMPLES, sample_size = IDS)]
fn uuid_v4() -> Uuid {
    Uuid::new_v4()
}

#[divan::bench(threads = [1, 2], sample_count = SAMPLES, sample_size = IDS)]
fn uuid_v7() -> Uuid {
    Uuid::now_v7()
}

#[divan::bench(sample_count = SAMPLES, sample_size = IDS)]
fn write_text(bencher: Bencher) {
    let id = VARIABLE.next_id();
    bencher.bench(|| {
        let mut buffer = [0; TEXT_LEN];
        divan::black_box(id).encode_text(&mut buffer);
        buffer
    });
}

#[divan::bench(sample_count = SAMPLES, sample_size = IDS)]
fn read_text(bencher: Bencher) {
    let text = VARIABLE.next_id().to_string();
    bencher.bench(|| divan::black_box(&text).parse::<LocalityId>());
}

//! Work that leaves the processors and the disk to calls: on a thread of its own with a low
//! priority, with rests as long as the work.

use std::thread;
use std::time::{Duration, Instant};

use crate::error::Fault;

/// The work after which a rest is due, and the longest rest.
const WORK: Duration = Duration::from_millis(4);
const MAX_REST: Duration = Duration::from_millis(50);

/// Runs work on a thread of its own with a low priority, and waits for it.
pub fn run<T: Send>(work: impl FnOnce() -> Result<T, Fault> + Send) -> Result<T, Fault> {
    let run = || {
        lower_priority();
        work()
    };
    thread::scope(|scope| {
        let name = "polynym-copy".to_owned();
        let thread = thread::Builder::new().name(name).spawn_scoped(scope, run);
        thread.map_err(redb::Error::Io)?.join().unwrap_or(Err(Fault::Panicked))
    })
}

/// Lowers the priority of this thread: beside busy threads it has a tenth of a processor. Other
/// systems than Linux have one priority for the whole process.
#[cfg(target_os = "linux")]
fn lower_priority() {
    const NICE: i32 = 10;
    // The work is right at any priority.
    let _: Result<(), _> = rustix::process::setpriority_process(None, NICE);
}

#[cfg(not(target_os = "linux"))]
fn lower_priority() {}

/// The rests of a thread, which are as long as the work before: the work takes at most twice the
/// time.
pub struct Rests {
    since: Instant,
}

impl Rests {
    /// Work that begins now.
    pub fn new() -> Self {
        Self { since: Instant::now() }
    }

    /// Rests if a rest is due. Returns whether it did.
    pub fn rest(&mut self) -> bool {
        let due = rest_after(self.since.elapsed());
        if let Some(rest) = due {
            thread::sleep(rest);
            self.since = Instant::now();
        }
        due.is_some()
    }
}

/// The rest after this time of work, if it is due.
fn rest_after(worked: Duration) -> Option<Duration> {
    (worked >= WORK).then(|| worked.min(MAX_REST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_is_as_long_as_the_work() {
        assert_eq!(rest_after(WORK / 2), None);
        assert_eq!(rest_after(WORK), Some(WORK));
        assert_eq!(rest_after(2 * WORK), Some(2 * WORK));
        assert_eq!(rest_after(Duration::from_secs(60)), Some(MAX_REST));

        let (begin, mut rests) = (Instant::now(), Rests::new());
        assert!(!Rests { since: Instant::now() + WORK }.rest());
        while !rests.rest() {}
        assert!(begin.elapsed() >= 2 * WORK);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_thread_alone_has_a_low_priority() {
        let nice = || rustix::process::getpriority_process(None).unwrap();
        let before = nice();
        assert!(run(|| Ok(nice())).unwrap() >= 10);
        assert_eq!(nice(), before);
    }

    #[test]
    fn a_panic_is_a_fault() {
        let outcome = run::<()>(|| panic!("as asked"));
        assert!(matches!(outcome, Err(Fault::Panicked)));
    }
}

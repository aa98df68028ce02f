//! The metrics of the process, which Prometheus names alike for all programs, from the files of
//! Linux in `/proc`. What cannot be read is left out.

use std::fmt::Write;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// The unit of processor time in `/proc`: a hundredth of a second on all architectures.
const TICKS_PER_SECOND: f64 = 100.0;
/// The position of the time in user mode among the fields after the name of the program; that in
/// the kernel follows.
const USER_TIME: usize = 11;

/// The process.
#[derive(Clone, Copy)]
pub struct Process {
    start: SystemTime,
}

impl Process {
    /// This process, which has just started. Its start is measured here, because the file with the
    /// start of the system is hidden in a service with `ProcSubset=pid`.
    pub fn new() -> Self {
        Self { start: SystemTime::now() }
    }

    /// The metrics in the text format of Prometheus.
    pub fn render(self) -> String {
        let start = self.start.duration_since(UNIX_EPOCH).ok().map(|time| time.as_secs_f64());
        let metrics = [
            ("cpu_seconds_total", "counter", "Processor time of the process", cpu_seconds()),
            ("resident_memory_bytes", "gauge", "Resident memory of the process", resident()),
            ("open_fds", "gauge", "Open file descriptors", open_descriptors()),
            ("max_fds", "gauge", "Limit of open file descriptors", max_descriptors()),
            ("start_time_seconds", "gauge", "Start of the process since the Unix epoch", start),
        ];
        let mut text = String::new();
        for (name, kind, help, value) in metrics {
            let Some(value) = value else { continue };
            let _ = write!(
                text,
                "# HELP process_{name} {help}\n# TYPE process_{name} {kind}\n\
                 process_{name} {value}\n\n"
            );
        }
        text
    }
}

fn cpu_seconds() -> Option<f64> {
    ticks(&fs::read_to_string("/proc/self/stat").ok()?).map(|ticks| ticks / TICKS_PER_SECOND)
}

/// The processor time of a line of `/proc/self/stat`. The program's name in it may have spaces and
/// parentheses.
fn ticks(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_whitespace().skip(USER_TIME).map(str::parse::<f64>);
    Some(times.next()?.ok()? + times.next()?.ok()?)
}

fn resident() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kibibytes = first_number(&status, "VmRSS:")?;
    Some(kibibytes * 1_024.0)
}

fn open_descriptors() -> Option<f64> {
    let listed = fs::read_dir("/proc/self/fd").ok()?.count();
    // The folder itself is open while it is read.
    u32::try_from(listed.saturating_sub(1)).ok().map(f64::from)
}

fn max_descriptors() -> Option<f64> {
    first_number(&fs::read_to_string("/proc/self/limits").ok()?, "Max open files")
}

/// The first number after the name at the beginning of a line.
fn first_number(text: &str, name: &str) -> Option<f64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{first_number, ticks};

    #[test]
    fn times_are_found_behind_any_name() {
        let fields = "S 1 2 3 4 5 6 7 8 9 10 150 75 0 0 20 0";
        assert_eq!(ticks(&format!("42 (polynym) {fields}")), Some(225.0));
        assert_eq!(ticks(&format!("42 (a b) 9 (c) {fields}")), Some(225.0));
        assert_eq!(ticks("42 (polynym) S 1 2"), None);
        assert_eq!(ticks(""), None);
    }

    #[test]
    fn numbers_are_found_by_the_beginning_of_their_line() {
        let text = "Limit       Soft   Hard   Units\nMax open files   1024   524288   files\n";
        assert_eq!(first_number(text, "Max open files"), Some(1024.0));
        assert_eq!(first_number("Max open files   unlimited\n", "Max open files"), None);
        assert_eq!(first_number(text, "Max processes"), None);
    }
}

//! Ten-minute windows of UTC, and the counters at which sequential mode starts them.

use md5::{Digest, Md5};

/// The length of a window in seconds.
pub(super) const SECONDS: u64 = 600;

const SECONDS_OF_DAY: u64 = 86_400;

/// The starting counter of `window`, counted from the Unix epoch: the first four bytes of the MD5
/// hash of its label, little-endian. It is the same on all nodes.
pub(super) fn start(window: u64) -> u32 {
    let hash = Md5::digest(label(window));
    u32::from_le_bytes([hash[0], hash[1], hash[2], hash[3]])
}

/// The first 11 digits of the UTC time as `YYYYMMDDHHMM`, constant throughout a window.
pub(super) fn label(window: u64) -> [u8; 11] {
    let seconds = window * SECONDS;
    let (year, month, day) = civil_date(seconds / SECONDS_OF_DAY);
    let (hour, minute) = (seconds / 3_600 % 24, seconds / 60 % 60);
    let mut number = (((year * 100 + month) * 100 + day) * 100 + hour) * 10 + minute / 10;

    let mut digits = [b'0'; 11];
    for digit in digits.iter_mut().rev() {
        *digit += (number % 10) as u8;
        number /= 10;
    }
    digits
}

/// Year, month and day of the Gregorian calendar, `days` after 1970-01-01.
///
/// Years here begin in March, so that the leap day is last and the lengths of months repeat every
/// five months: 153 days.
fn civil_date(days: u64) -> (u64, u64, u64) {
    let since_year_0 = days + 719_468;
    let (era, day_of_era) = (since_year_0 / 146_097, since_year_0 % 146_097);
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let (month, next_year) = match month_from_march {
        0..=9 => (month_from_march + 3, 0),
        _ => (month_from_march - 9, 1),
    };

    (era * 400 + year_of_era + next_year, month, day)
}

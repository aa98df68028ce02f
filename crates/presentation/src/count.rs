//! Sizes and measured times.

/// A size in its largest unit, such as `1.5 MiB`.
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let power = (0..UNITS.len()).rev().find(|power| bytes >> (10 * power) > 0).unwrap_or_default();
    match power {
        0 => format!("{bytes} B"),
        _ => format!("{:.1} {}", bytes as f64 / (1_u64 << (10 * power)) as f64, UNITS[power]),
    }
}

/// A measured time in the unit that suits it, such as `4.2 ms`; a dash without a value.
pub fn seconds(seconds: Option<f64>) -> String {
    match seconds {
        None => "–".to_owned(),
        Some(seconds) if seconds < 1e-3 => format!("{:.0} µs", seconds * 1e6),
        Some(seconds) if seconds < 1.0 => format!("{:.1} ms", seconds * 1e3),
        Some(seconds) => format!("{seconds:.2} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_units() {
        for (size, text) in [(0, "0 B"), (1_023, "1023 B"), (1_536 << 10, "1.5 MiB")] {
            assert_eq!(bytes(size), text);
        }
        for (time, text) in [(0.00012, "120 µs"), (0.0042, "4.2 ms"), (1.5, "1.50 s")] {
            assert_eq!(seconds(Some(time)), text);
        }
        assert_eq!(seconds(None), "–");
    }
}

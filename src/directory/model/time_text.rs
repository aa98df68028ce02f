//! Instants as text, by RFC 3339.

use prost_types::Timestamp as ProtoTimestamp;

use crate::directory::encoded::encode::time_message;
use crate::directory::model::timestamp::Timestamp;

/// The text of an instant.
pub fn time_text(time: Timestamp) -> String {
    let in_range = (Timestamp::MIN..=Timestamp::MAX).contains(&time);
    if in_range { time_message(time).to_string() } else { time.as_millis().to_string() }
}

/// The instant of a text with date, time and zone, to the millisecond; none where the text has
/// another form, or a year outside 1 to 9999.
pub fn parse_time(text: &str) -> Option<Timestamp> {
    let has =
        |at: usize, wanted: &[u8]| text.as_bytes().get(at).is_some_and(|b| wanted.contains(b));
    if !(has(4, b"-") && has(7, b"-") && has(10, b"Tt") && has(13, b":") && has(16, b":")) {
        return None;
    }
    let ProtoTimestamp { seconds, nanos } = text.parse().ok()?;
    let millis = seconds.checked_mul(1_000)?.checked_add(i64::from(nanos) / 1_000_000)?;
    Some(Timestamp::from_millis(millis))
        .filter(|time| (Timestamp::MIN..=Timestamp::MAX).contains(time))
}

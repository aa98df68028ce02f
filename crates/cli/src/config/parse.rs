//! Parses values from text. Errors name the correct form.

use std::net::{SocketAddr, ToSocketAddrs};
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use polynym_presentation::duration;

/// On or off.
pub fn switch(text: &str) -> Result<bool, String> {
    match text {
        "true" | "on" | "yes" | "1" => Ok(true),
        "false" | "off" | "no" | "0" => Ok(false),
        _ => Err("write true or false".to_owned()),
    }
}

/// A whole number within `range`, with optional `_` between digits.
pub fn count(range: RangeInclusive<usize>) -> impl Fn(&str) -> Result<usize, String> {
    move |text| {
        let number = text.replace('_', "").parse().ok().filter(|number| range.contains(number));
        let (start, end) = (range.start(), range.end());
        number.ok_or_else(|| format!("write a whole number from {start} to {end}"))
    }
}

/// A number of bytes: `256MiB`, `1GB`, `65536`.
pub fn size(text: &str) -> Result<usize, String> {
    let size = text.parse::<ByteSize>().ok().filter(|size| size.as_u64() < u64::MAX);
    let bytes = size.and_then(|size| usize::try_from(size.as_u64()).ok());
    bytes.ok_or_else(|| "write a size such as 256MiB, 1GiB, 500MB or a number of bytes".to_owned())
}

/// The size of a cache.
pub fn cache_size(text: &str) -> Result<usize, String> {
    match size(text)? {
        ..0x10_0000 => Err("must be at least 1MiB".to_owned()),
        bytes => Ok(bytes),
    }
}

/// The size of a cache; 0 for no cache.
pub fn optional_cache_size(text: &str) -> Result<usize, String> {
    if size(text) == Ok(0) { Ok(0) } else { cache_size(text) }
}

/// The maximum size of a user: it fits the response to a batch, and fits what one call can add.
pub fn user_size(text: &str) -> Result<usize, String> {
    let bytes = size(text)?;
    let is_valid = (64 << 10..=2 << 20).contains(&bytes);
    is_valid.then_some(bytes).ok_or_else(|| "must be from 64KiB to 2MiB".to_owned())
}

/// The skew of Zipf's law.
pub fn skew(text: &str) -> Result<f64, String> {
    let skew = text.parse().ok().filter(|skew| (0.0..1.0).contains(skew));
    skew.ok_or_else(|| "write a number from 0 to below 1, such as 0.99".to_owned())
}

/// A duration: `10s`, `500ms`, `2m`, or a number of seconds, which may be fractional.
pub fn duration(text: &str) -> Result<Duration, String> {
    let seconds =
        || Duration::try_from_secs_f64(text.strip_suffix('s').unwrap_or(text).parse().ok()?).ok();
    duration::parse(text)
        .or_else(seconds)
        .ok_or_else(|| "write a duration such as 10s, 500ms, 2m, or a number of seconds".to_owned())
}

/// A duration greater than zero.
pub fn positive(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("must be greater than zero".to_owned()),
        duration => Ok(duration),
    }
}

/// The addresses of `HOST:PORT`.
pub fn addresses(text: &str) -> Result<Vec<SocketAddr>, String> {
    let wrong = || {
        format!("{text:?} is not an address: write HOST:PORT, as in 127.0.0.1:7171 or [::1]:7171")
    };
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    if host.is_empty() || port.parse::<u16>().is_err() {
        return Err(wrong());
    }

    match text.to_socket_addrs() {
        Ok(found) => Ok(found.collect()),
        Err(error) => Err(format!("cannot resolve the host of {text:?} ({error})")),
    }
}

/// The addresses of `HOST:PORT`; none if the text is empty.
pub fn optional_addresses(text: &str) -> Result<Option<Vec<SocketAddr>>, String> {
    if text.is_empty() { Ok(None) } else { addresses(text).map(Some) }
}

/// One of `choices`.
pub fn choice<T: Copy>(choices: &[(&str, T)]) -> impl Fn(&str) -> Result<T, String> {
    |text| {
        let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
        let chosen = choices.iter().find(|(name, _)| *name == text);
        chosen.map(|(_, value)| *value).ok_or_else(|| format!("write {}", names.join(" or ")))
    }
}

/// Any text.
pub fn text(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// A file's path; none if the text is empty.
pub fn path(text: &str) -> Result<Option<PathBuf>, String> {
    Ok(Some(text).filter(|text| !text.is_empty()).map(PathBuf::from))
}

/// A rate per second; none if it is 0.
pub fn rate(text: &str) -> Result<Option<NonZeroU32>, String> {
    text.parse().map(NonZeroU32::new).map_err(|_| "write a whole number, or 0 for no limit".into())
}

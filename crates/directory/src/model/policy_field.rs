//! A policy of one value: in the model, in updates and in the API's message.

use std::time::Duration;

use polynym_proto::v1;
use prost_types::Duration as ProtoDuration;

use super::policies::within;
use super::policy_table::{Policies, PolicyUpdate};
use crate::error::{Error, Invalid};

/// A policy of one value.
#[derive(Debug)]
pub enum Policy {
    /// On or off.
    Switch(Field<bool, bool>),
    /// A duration, with its maximum.
    Window(Field<Duration, Option<ProtoDuration>>, Duration),
    /// A number from 1, with its maximum.
    Count(Field<u32, i32>, u32),
}

/// The fields of a policy with values of type `T`, and of type `M` in messages.
#[derive(Debug)]
pub struct Field<T, M> {
    /// The name in the API.
    pub path: &'static str,
    /// The number in hashes of requests, which those without the policy do not have. None for a
    /// policy of the first version, which every hash and every stored tenant has.
    pub number: Option<u8>,
    /// The default.
    pub default: T,
    /// The value.
    pub value: fn(&Policies) -> T,
    /// The value, to set it.
    pub value_mut: fn(&mut Policies) -> &mut T,
    /// The new value, if there is one.
    pub update: fn(&PolicyUpdate) -> Option<T>,
    /// The new value, to set it.
    pub update_mut: fn(&mut PolicyUpdate) -> &mut Option<T>,
    /// The value in a message.
    pub message: fn(&v1::Policies) -> M,
    /// The value in a message, to set it.
    pub message_mut: fn(&mut v1::Policies) -> &mut M,
}

impl Field<Duration, Option<ProtoDuration>> {
    /// The value if the message has none: zero for policies that every tenant has.
    fn absent(&self) -> Duration {
        self.number.map_or(Duration::ZERO, |_| self.default)
    }
}

impl Policy {
    /// The name in the API.
    pub const fn path(&self) -> &'static str {
        match self {
            Self::Switch(field) => field.path,
            Self::Window(field, _) => field.path,
            Self::Count(field, _) => field.path,
        }
    }

    /// The number in hashes of requests.
    pub(crate) const fn number(&self) -> Option<u8> {
        match self {
            Self::Switch(field) => field.number,
            Self::Window(field, _) => field.number,
            Self::Count(field, _) => field.number,
        }
    }

    /// The new value as a number, if an update has one.
    pub(crate) fn new_number(&self, update: &PolicyUpdate) -> Option<u64> {
        match self {
            Self::Switch(field) => (field.update)(update).map(u64::from),
            Self::Window(field, _) => (field.update)(update).map(|time| time.as_millis() as u64),
            Self::Count(field, _) => (field.update)(update).map(u64::from),
        }
    }

    /// Checks the bounds of the new value.
    pub(crate) fn check(&self, update: &PolicyUpdate) -> Result<(), Error> {
        match self {
            Self::Switch(_) => Ok(()),
            Self::Window(field, max) => {
                let time = (field.update)(update).unwrap_or_default();
                within(time, *max, &format!("policies.{}", field.path))
            }
            Self::Count(field, max) => match (field.update)(update) {
                Some(count) if !(1..=*max).contains(&count) => {
                    let (field, rule) = (format!("policies.{}", field.path), format!("1 to {max}"));
                    Err(Error::invalid(Invalid::Policy, field, rule))
                }
                _ => Ok(()),
            },
        }
    }

    /// Sets the new value, if there is one.
    pub(crate) fn apply(&self, update: &PolicyUpdate, policies: &mut Policies) {
        fn set<T: Copy, M>(field: &Field<T, M>, update: &PolicyUpdate, policies: &mut Policies) {
            if let Some(value) = (field.update)(update) {
                *(field.value_mut)(policies) = value;
            }
        }
        match self {
            Self::Switch(field) => set(field, update, policies),
            Self::Window(field, _) => set(field, update, policies),
            Self::Count(field, _) => set(field, update, policies),
        }
    }

    /// Writes the value into a message. A duration that is zero by default and zero is absent.
    pub(crate) fn write(&self, policies: &Policies, message: &mut v1::Policies) {
        match self {
            Self::Switch(field) => *(field.message_mut)(message) = (field.value)(policies),
            Self::Window(field, _) => {
                let time = (field.value)(policies);
                let is_absent = time.is_zero() && field.default.is_zero();
                *(field.message_mut)(message) = (!is_absent).then(|| span(time));
            }
            Self::Count(field, _) => {
                *(field.message_mut)(message) = (field.value)(policies) as i32;
            }
        }
    }

    /// Removes a default from a message, but for policies that every stored tenant has: the etags
    /// of tenants from before the policy stay the same.
    pub(crate) fn omit_default(&self, message: &mut v1::Policies) {
        match self {
            Self::Window(field, _) if field.number.is_some() => {
                (field.message_mut)(message).take_if(|time| *time == span(field.default));
            }
            Self::Count(field, _) if (field.message)(message) == field.default as i32 => {
                *(field.message_mut)(message) = 0;
            }
            _ => {}
        }
    }

    /// Reads the value of a stored message.
    pub(crate) fn read(&self, message: &v1::Policies, policies: &mut Policies) {
        match self {
            Self::Switch(field) => *(field.value_mut)(policies) = (field.message)(message),
            Self::Window(field, _) => {
                let time = (field.message)(message);
                *(field.value_mut)(policies) = time.map_or(field.absent(), read_span);
            }
            Self::Count(field, _) => {
                let count = u32::try_from((field.message)(message)).ok();
                let count = count.filter(|count| *count > 0).unwrap_or(field.default);
                *(field.value_mut)(policies) = count;
            }
        }
    }

    /// Whether the messages have different values.
    pub(crate) fn differs(&self, one: &v1::Policies, other: &v1::Policies) -> bool {
        match self {
            Self::Switch(field) => (field.message)(one) != (field.message)(other),
            Self::Window(field, _) => (field.message)(one) != (field.message)(other),
            Self::Count(field, _) => (field.message)(one) != (field.message)(other),
        }
    }

    /// Whether a message of a request has the value.
    pub fn is_given(&self, message: &v1::Policies) -> bool {
        match self {
            Self::Switch(field) => (field.message)(message),
            Self::Window(field, _) => (field.message)(message).is_some(),
            Self::Count(field, _) => (field.message)(message) != 0,
        }
    }

    /// Takes the new value from a request. An absent duration is zero, and an absent number the
    /// default. A negative number becomes 0, which is rejected later.
    ///
    /// # Errors
    /// The duration is negative or out of range.
    pub fn take(&self, message: &v1::Policies, update: &mut PolicyUpdate) -> Result<(), Error> {
        match self {
            Self::Switch(field) => *(field.update_mut)(update) = Some((field.message)(message)),
            Self::Window(field, _) => {
                let time = period((field.message)(message), field.path)?;
                *(field.update_mut)(update) = Some(time);
            }
            Self::Count(field, _) => {
                let count = match (field.message)(message) {
                    0 => field.default,
                    count => count.try_into().unwrap_or_default(),
                };
                *(field.update_mut)(update) = Some(count);
            }
        }
        Ok(())
    }
}

/// The duration of a policy in a request, in whole milliseconds; zero if it is absent.
///
/// # Errors
/// It is negative or out of range.
pub fn period(message: Option<ProtoDuration>, path: &str) -> Result<Duration, Error> {
    let Some(message) = message else { return Ok(Duration::ZERO) };
    let exact = Duration::try_from(message).map_err(|_| {
        let rule = "must be a duration, and not negative";
        Error::invalid(Invalid::Policy, format!("policies.{path}"), rule)
    })?;
    Ok(Duration::from_millis(u64::try_from(exact.as_millis()).unwrap_or(u64::MAX)))
}

/// A duration as a message.
pub(crate) fn span(time: Duration) -> ProtoDuration {
    ProtoDuration { seconds: time.as_secs() as i64, nanos: time.subsec_nanos() as i32 }
}

/// The duration of a stored message.
pub(crate) fn read_span(message: ProtoDuration) -> Duration {
    Duration::try_from(message).unwrap_or_default()
}

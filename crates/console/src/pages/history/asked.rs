//! The changes that somebody asks for in the audit: the fields of its form, as typed.

use std::time::SystemTime;

use polynym_presentation::event::KINDS;
use polynym_presentation::time;
use polynym_proto::v1;
use url::form_urlencoded::{self, Serializer};

use super::period::{PAGE_SIZE, Period};
use crate::failure::Failure;
use crate::form::Form;
use crate::short_id::ShortId;
use crate::visit::Visit;

/// The prefix of a kept query for changes. Kept searches do not have it.
const MARK: &str = "changes?";
/// The fields of the form.
const FIELDS: [&str; 6] = ["caller", "operation", "reason", "from", "to", "kind"];
/// The seconds of a day.
const DAY: i64 = 86_400;
/// The periods to choose: the name, the days before today at which they begin, and those at which
/// they end, if they do.
const PERIODS: [(&str, i64, Option<i64>); 3] =
    [("Today", 0, None), ("Yesterday", 1, Some(0)), ("Last 7 days", 6, None)];

/// The fields of the form, as typed.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    pub caller: String,
    pub operation: String,
    pub reason: String,
    pub period: Period,
}

/// A field that leaves changes out.
pub struct Chip {
    pub label: &'static str,
    pub value: String,
    /// The name of the field.
    pub field: &'static str,
}

impl Asked {
    /// The fields of a form. A button for a period fills in both of its ends.
    pub fn of_form(form: &Form) -> Self {
        let mut asked = Self::default();
        for name in FIELDS {
            form.get(name).clone_into(asked.field(name));
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let chosen = PERIODS.iter().find(|(name, ..)| *name == form.get("period"));
        if let Some((_, from, to)) = chosen {
            let today = i64::try_from(now.as_secs()).unwrap_or_default() / DAY;
            asked.period.from = day(today - from);
            asked.period.to = to.map(|to| day(today - to)).unwrap_or_default();
        }
        asked
    }

    /// Those that a session keeps under an id.
    pub fn kept(visit: &Visit, id: ShortId) -> Result<Self, Failure> {
        let kept = visit.session.queries.get(id);
        let query = kept.as_deref().and_then(|text| text.strip_prefix(MARK));
        let mut asked = Self::default();
        for (name, value) in form_urlencoded::parse(query.ok_or(Failure::SearchGone)?.as_bytes()) {
            value.into_owned().clone_into(asked.field(&name));
        }
        Ok(asked)
    }

    /// The address of these changes. A short id stands for the fields: a caller may have the name
    /// of a person.
    pub fn address(&self, visit: &Visit, audit: &str) -> String {
        let all = FIELDS.map(|name| (name, self.value(name)));
        let given = all.into_iter().filter(|(_, value)| !value.is_empty());
        match &*Serializer::new(String::new()).extend_pairs(given).finish() {
            "" => audit.to_owned(),
            query => format!("{audit}/{}", visit.session.queries.add(&format!("{MARK}{query}"))),
        }
    }

    /// The same without a field.
    pub fn without(mut self, name: &str) -> Self {
        self.field(name).clear();
        self
    }

    fn field(&mut self, name: &str) -> &mut String {
        match name {
            "caller" => &mut self.caller,
            "operation" => &mut self.operation,
            "reason" => &mut self.reason,
            "from" => &mut self.period.from,
            "to" => &mut self.period.to,
            _ => &mut self.period.kind,
        }
    }

    fn value(&self, name: &str) -> &str {
        match name {
            "caller" => &self.caller,
            "operation" => &self.operation,
            "reason" => &self.reason,
            "from" => &self.period.from,
            "to" => &self.period.to,
            _ => &self.period.kind,
        }
    }

    /// The fields that leave changes out.
    pub fn chips(&self) -> Vec<Chip> {
        let labels = ["Caller", "Operation", "Reason has", "From", "To", "Kind"];
        let chip = |(field, label): (&'static str, &'static str)| {
            let value = match field {
                "kind" => self.kind_word().to_owned(),
                _ => self.value(field).to_owned(),
            };
            Chip { label, value, field }
        };
        FIELDS.into_iter().zip(labels).map(chip).filter(|chip| !chip.value.is_empty()).collect()
    }

    /// The kind in words; empty for all.
    fn kind_word(&self) -> &'static str {
        let types = self.period.types();
        let kind = types.first();
        let known = KINDS.iter().find(|words| Some(&i32::from(words.kind)) == kind);
        known.map_or("", |words| words.word)
    }

    /// The names of the periods to choose.
    pub fn periods(&self) -> [&'static str; 3] {
        PERIODS.map(|(name, ..)| name)
    }

    /// Whether they leave changes out.
    pub fn is_filter(&self) -> bool {
        FIELDS.iter().any(|name| !self.value(name).is_empty())
    }

    /// The call that lists the changes.
    ///
    /// # Errors
    /// A time is none.
    pub fn request(&self, tenant: &str) -> Result<v1::ListEventsRequest, Failure> {
        Ok(v1::ListEventsRequest {
            tenant: tenant.to_owned(),
            from: self.period.begin()?,
            to: self.period.end()?,
            types: self.period.types(),
            caller: self.caller.clone(),
            operation_id: self.operation.clone(),
            reason: self.reason.clone(),
            page_token: String::new(),
            page_size: PAGE_SIZE,
        })
    }
}

/// Whether a call lists an event, as the API decides it.
pub fn lists(request: &v1::ListEventsRequest, event: &v1::Event) -> bool {
    let is_or_any = |wanted: &str, given: &str| wanted.is_empty() || wanted == given;
    let time = |time: &prost_types::Timestamp| (time.seconds, time.nanos);
    let at = event.time.as_ref().map(time);
    let reason = request.reason.to_lowercase();
    is_or_any(&request.caller, &event.caller)
        && is_or_any(&request.operation_id, &event.operation_id)
        && (reason.is_empty() || event.reason.to_lowercase().contains(&reason))
        && (request.types.is_empty() || request.types.contains(&event.event_type().into()))
        && request.from.as_ref().is_none_or(|from| at >= Some(time(from)))
        && request.to.as_ref().is_none_or(|to| at < Some(time(to)))
}

/// A day, such as `2026-01-31`, by its number since 1970.
fn day(number: i64) -> String {
    let minute = time::minute(number.saturating_mul(DAY));
    minute.get(..10).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> v1::Event {
        v1::Event {
            time: Some(prost_types::Timestamp { seconds: 1_000, nanos: 5 }),
            caller: "ann".to_owned(),
            reason: "Ticket CRM-12".to_owned(),
            operation_id: "op".to_owned(),
            change: Some(v1::event::Change::UserCreated(v1::ChangeSet::default())),
            ..Default::default()
        }
    }

    #[test]
    fn an_event_is_listed_if_it_has_all_that_is_asked_for() {
        let asked = |fields: &[(&str, &str)]| {
            lists(&Asked::of_form(&Form::of(fields)).request("a").unwrap(), &event())
        };
        let created = i32::from(v1::EventType::UserCreated).to_string();
        let updated = i32::from(v1::EventType::UserUpdated).to_string();
        for fields in [
            &[][..],
            &[("caller", "ann"), ("reason", "crm-12"), ("operation", "op"), ("kind", &created)],
            &[("from", "1970-01-01T00:16:40"), ("to", "1970-01-01T00:16:41")],
        ] {
            assert!(asked(fields), "{fields:?}");
        }
        for fields in [
            [("caller", "an")],
            [("reason", "crm-13")],
            [("operation", "o")],
            [("kind", &*updated)],
            [("from", "1970-01-01T00:16:41")],
            [("to", "1970-01-01T00:16:40")],
        ] {
            assert!(!asked(&fields), "{fields:?}");
        }
    }

    #[test]
    fn a_button_fills_in_its_period() {
        let of = |name: &str| Asked::of_form(&Form::of(&[("period", name), ("to", "2001-01-01")]));
        let today = of("Today").period;
        assert_eq!((today.from.len(), &*today.to), (10, ""));
        let yesterday = of("Yesterday").period;
        assert_eq!(yesterday.to, today.from);
        assert!(yesterday.from < today.from);
        assert!(of("Last 7 days").period.from < yesterday.from);
        assert_eq!(of("").period.to, "2001-01-01");
        assert_eq!([day(0), day(20_454)], ["1970-01-01", "2026-01-01"]);
    }
}

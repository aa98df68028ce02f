//! The changes that somebody asks for in the audit: the fields of its form, as typed.

use std::time::SystemTime;

use polynym_presentation::event::KINDS;
use polynym_presentation::time;
use polynym_proto::v1;
use prost_types::Timestamp;
use url::form_urlencoded::{self, Serializer};

use super::period::{PAGE_SIZE, Period};
use super::wanted::Wanted;
use crate::failure::Failure;
use crate::form::{Form, is_day};
use crate::short_id::ShortId;
use crate::visit::Visit;

/// The prefix of a kept query for changes. Kept searches do not have it.
const MARK: &str = "changes?";
/// The fields of the form.
const FIELDS: [&str; 8] = ["user", "caller", "operation", "reason", "from", "to", "kind", PERIOD];
/// The name of both ends of a period as one field.
const PERIOD: &str = "period";
/// The seconds of a day.
const DAY: i64 = 86_400;
/// The periods to choose: the name, the days before today at which they begin, and those before
/// which they end, if they do.
const PERIODS: [(&str, i64, Option<i64>); 3] =
    [("Today", 0, None), ("Yesterday", 1, Some(0)), ("Last 7 days", 6, None)];
/// The seconds by which a day of a zone may begin before or after one of UTC, and those by which
/// its length may differ.
const ZONES: i64 = 15 * 3_600;
const SHIFT: i64 = 3_600;

/// The fields of the form, as typed.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    /// The id of the only user; empty for all.
    pub user: String,
    pub caller: String,
    pub operation: String,
    pub reason: String,
    pub period: Period,
    /// The name of the period to choose that both ends are of; empty if they were typed.
    chosen: String,
}

/// A field that leaves changes out.
pub struct Chip {
    pub label: &'static str,
    pub value: String,
    /// Whether the value is words.
    pub is_words: bool,
    /// The name of the field.
    pub field: &'static str,
}

/// A period to choose.
pub struct PeriodChoice {
    pub name: &'static str,
    pub is_chosen: bool,
}

impl Asked {
    /// The fields of a form. A button for a period fills in both of its ends: scripts send the
    /// beginnings of days in the zone that they show.
    pub fn of_form(form: &Form) -> Self {
        let mut asked = Self::default();
        for name in FIELDS {
            form.get(name).clone_into(asked.field(name));
        }
        let chosen = PERIODS.iter().find(|(name, ..)| *name == form.get(PERIOD));
        if let Some((_, from, to)) = chosen {
            asked.period.from = begin_of_day(form, *from).unwrap_or_else(|| day(today() - from));
            // A day is in its period as a whole.
            let last = |to: i64| day(today() - to - 1);
            let end = to.map(|to| begin_of_day(form, to).unwrap_or_else(|| last(to)));
            asked.period.to = end.unwrap_or_default();
        } else {
            asked.chosen.clear();
        }
        asked
    }

    /// The name of the period to choose that is asked for; none if it is another one.
    fn chosen_period(&self) -> Option<&'static str> {
        let (from, to) = (self.period.begin().ok()?, self.period.end().ok()?);
        let today = today();
        let begin = |day: i64| Timestamp { seconds: (today - day) * DAY, nanos: 0 };
        let is_utc =
            |first: i64, end: Option<i64>| (from, to) == (Some(begin(first)), end.map(begin));
        // The chosen one is another day's after midnight.
        let is_present = |first: i64| {
            let since = from.map(|from| now() - from.seconds - first * DAY);
            since.is_some_and(|since| (-SHIFT..DAY + SHIFT).contains(&since))
        };
        let found = PERIODS.iter().find(|(name, first, end)| {
            is_utc(*first, *end) || (self.chosen == *name && is_present(*first))
        });
        found.map(|(name, ..)| *name)
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

    /// The same without a field; without both ends of a period.
    pub fn without(mut self, name: &str) -> Self {
        let names = match name {
            PERIOD => &["from", "to", PERIOD][..],
            "from" | "to" => &[name, PERIOD],
            _ => &[name],
        };
        names.iter().for_each(|name| self.field(name).clear());
        self
    }

    fn field(&mut self, name: &str) -> &mut String {
        match name {
            "user" => &mut self.user,
            "caller" => &mut self.caller,
            "operation" => &mut self.operation,
            "reason" => &mut self.reason,
            "from" => &mut self.period.from,
            "to" => &mut self.period.to,
            PERIOD => &mut self.chosen,
            _ => &mut self.period.kind,
        }
    }

    fn value(&self, name: &str) -> &str {
        match name {
            "user" => &self.user,
            "caller" => &self.caller,
            "operation" => &self.operation,
            "reason" => &self.reason,
            "from" => &self.period.from,
            "to" => &self.period.to,
            PERIOD => &self.chosen,
            _ => &self.period.kind,
        }
    }

    /// The fields that leave changes out; the user by name.
    pub fn chips(&self, user_name: &str) -> Vec<Chip> {
        let labels = ["User", "Caller", "Operation", "Reason has", "From", "To", "Kind"];
        let chosen = self.chosen_period();
        let chip = |(field, label): (&'static str, &'static str)| match (field, chosen) {
            ("from", Some(name)) => {
                let (value, label) = (name.to_owned(), "Period");
                Chip { label, value, is_words: true, field: PERIOD }
            }
            ("to", Some(_)) => Chip { label, value: String::new(), is_words: false, field },
            ("user", _) if !self.user.is_empty() => {
                Chip { label, value: user_name.to_owned(), is_words: false, field }
            }
            ("kind", _) => {
                Chip { label, value: self.kind_word().to_owned(), is_words: true, field }
            }
            _ => Chip { label, value: self.value(field).to_owned(), is_words: false, field },
        };
        FIELDS.into_iter().zip(labels).map(chip).filter(|chip| !chip.value.is_empty()).collect()
    }

    /// The fields that are given, without the user.
    pub fn others(&self) -> Vec<(&'static str, &str)> {
        let all = FIELDS.into_iter().map(|name| (name, self.value(name)));
        all.filter(|(name, value)| *name != "user" && !value.is_empty()).collect()
    }

    /// The kind in words; empty for all.
    fn kind_word(&self) -> &'static str {
        let types = self.period.types();
        let kind = types.first();
        let known = KINDS.iter().find(|words| Some(&i32::from(words.kind)) == kind);
        known.map_or("", |words| words.word)
    }

    /// The periods to choose.
    pub fn periods(&self) -> [PeriodChoice; 3] {
        let chosen = self.chosen_period();
        PERIODS.map(|(name, ..)| PeriodChoice { name, is_chosen: chosen == Some(name) })
    }

    /// Whether they leave changes out.
    pub fn is_filter(&self) -> bool {
        FIELDS.iter().any(|name| !self.value(name).is_empty())
    }

    /// The call that lists the changes.
    ///
    /// # Errors
    /// A time is none.
    pub fn request(&self, tenant: &str) -> Result<Wanted, Failure> {
        let events = v1::ListEventsRequest {
            tenant: tenant.to_owned(),
            from: self.period.begin()?,
            to: self.period.end()?,
            types: self.period.types(),
            caller: self.caller.clone(),
            operation_id: self.operation.clone(),
            reason: self.reason.clone(),
            page_token: String::new(),
            page_size: PAGE_SIZE,
        };
        Ok(Wanted { events, user_id: self.user.clone() })
    }
}

/// The seconds since 1970.
fn now() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or_default()
}

/// The number of the present day since 1970, in UTC.
fn today() -> i64 {
    now() / DAY
}

/// The beginning of a day before today in the zone of a browser; none if a script did not send it.
fn begin_of_day(form: &Form, days: i64) -> Option<String> {
    let text = form.get(&format!("day-{days}"));
    let begin = time::parse_input(text).filter(|_| !is_day(text))?.seconds;
    let distance = begin.saturating_sub((today() - days) * DAY).saturating_abs();
    (distance <= DAY + ZONES).then(|| text.to_owned())
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
            time: Some(Timestamp { seconds: 1_000, nanos: 5 }),
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
            Asked::of_form(&Form::of(fields)).request("a").unwrap().has(&event())
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
        assert_eq!(yesterday.to, yesterday.from, "the day as a whole");
        assert_eq!(yesterday.end().unwrap(), today.begin().unwrap());
        assert!(yesterday.from < today.from);
        assert!(of("Last 7 days").period.from < yesterday.from);
        assert_eq!(of("").period.to, "2001-01-01");
        assert_eq!([day(0), day(20_454)], ["1970-01-01", "2026-01-01"]);
    }

    #[test]
    fn periods_are_of_days_in_the_zone_of_the_browser() {
        let at = |seconds: i64| Timestamp { seconds: now() - seconds, nanos: 0 }.to_string();
        let [today, yesterday] = [7_200, 7_200 + DAY].map(at);
        let days = [("day-0", &*today), ("day-1", &*yesterday), ("day-6", "2001-01-01T00:00Z")];
        let of = |name: &str| Asked::of_form(&Form::of(&[&days[..], &[("period", name)]].concat()));
        assert_eq!(of("Today").period.from, today);
        let own = of("Yesterday");
        assert_eq!((&own.period.from, &own.period.to), (&yesterday, &today));
        assert_eq!(own.chosen_period(), Some("Yesterday"));
        assert_eq!(own.clone().without("to").chosen_period(), None);
        assert!(!own.without(PERIOD).is_filter());
        assert_eq!(of("Last 7 days").period.from.len(), 10, "another year is no beginning of it");
        let typed = Asked::of_form(&Form::of(&[("from", &*today)]));
        assert_eq!(typed.chosen_period(), None);
        let one = Asked::of_form(&Form::of(&[("from", "2026-01-31"), ("to", "2026-01-31")]));
        let [from, to] = [one.period.begin(), one.period.end()].map(|end| end.unwrap().unwrap());
        assert_eq!(to.seconds - from.seconds, DAY);
    }
}

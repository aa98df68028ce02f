//! The fields of policies in a form, and what somebody typed into them.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use polynym_presentation::duration;
use polynym_presentation::policy::{Field, POLICIES, Policy, Value};
use polynym_proto::v1::Policies;
use prost::Message;

use crate::form::Form;
use crate::views::policies::text;

/// A policy in the form.
pub struct FieldView {
    pub policy: &'static Policy,
    /// The id in the page.
    pub id: String,
    /// The number of a duration, or the count; as typed.
    pub number: String,
    /// The unit of a duration.
    pub unit: String,
    /// Whether a switch is on.
    pub is_on: bool,
    /// The reason why the value is refused; may be empty.
    pub error: String,
}

impl FieldView {
    /// The field with the value of these policies.
    pub fn of(policy: &'static Policy, policies: &Policies) -> Self {
        let (mut number, mut unit, mut is_on) = (String::new(), String::new(), false);
        match policy.value(policies) {
            Value::Switch(on) => is_on = on,
            Value::Count(count) => number = count.to_string(),
            Value::Time(time) => {
                let (count, name, _) = duration::parts(time.as_ref());
                (number, unit) = (count.to_string(), name.to_owned());
            }
        }
        let id = policy.path.replace('.', "-");
        Self { policy, id, number, unit, is_on, error: String::new() }
    }

    /// The field as typed. Sets the policy.
    fn typed(policy: &'static Policy, form: &Form, policies: &mut Policies) -> Self {
        let mut view = Self {
            policy,
            id: policy.path.replace('.', "-"),
            number: form.get(policy.path).chars().take(20).collect(),
            unit: form.get(&format!("{}.unit", policy.path)).chars().take(20).collect(),
            is_on: form.has(policy.path),
            error: String::new(),
        };
        match policy.field {
            Field::Switch(field) => *field(policies) = view.is_on,
            Field::Count(field) => match view.number.parse() {
                Ok(count) if count > 0 => *field(policies) = count,
                _ => "Write a whole number, at least 1.".clone_into(&mut view.error),
            },
            Field::Time(field) => match duration::of_parts(&view.number, &view.unit) {
                Ok(time) => *field(policies) = Some(time),
                Err(rule) => rule.clone_into(&mut view.error),
            },
        }
        view
    }

    /// Whether it is a switch.
    pub const fn is_switch(&self) -> bool {
        matches!(self.policy.field, Field::Switch(_))
    }

    /// Whether it is a duration.
    pub const fn is_time(&self) -> bool {
        matches!(self.policy.field, Field::Time(_))
    }
}

/// The submitted values.
pub struct Typed {
    /// The policies of the form as typed.
    pub policies: Policies,
    /// The paths of those that differ from what the person saw.
    pub mask: Vec<&'static Policy>,
    /// The fields.
    pub fields: Vec<FieldView>,
}

impl Typed {
    /// Reads the form.
    pub fn read(form: &Form) -> Self {
        let mut policies = Policies::default();
        let fields: Vec<_> =
            POLICIES.iter().map(|policy| FieldView::typed(policy, form, &mut policies)).collect();
        let base = decode(form.get("base"));
        let differs = |policy: &&Policy| text(policy, &policies) != text(policy, &base);
        Self { mask: POLICIES.iter().filter(differs).collect(), fields, policies }
    }

    /// Whether all values can be read.
    pub fn is_valid(&self) -> bool {
        self.fields.iter().all(|field| field.error.is_empty())
    }

    /// The paths of what the person changed.
    pub fn paths(&self) -> Vec<String> {
        self.mask.iter().map(|policy| policy.path.to_owned()).collect()
    }

    /// Other policies with what the person changed.
    pub fn applied_to(&self, policies: &Policies) -> Policies {
        let mut applied = policies.clone();
        for policy in &self.mask {
            policy.copy(&self.policies, &mut applied);
        }
        applied
    }
}

/// The policies of the form that a person sees, for a hidden field.
pub fn encode(policies: &Policies) -> String {
    let mut seen = Policies::default();
    for policy in POLICIES {
        policy.copy(policies, &mut seen);
    }
    URL_SAFE_NO_PAD.encode(seen.encode_to_vec())
}

/// The policies of a hidden field; the defaults of the message if it is malformed.
fn decode(text: &str) -> Policies {
    let bytes = URL_SAFE_NO_PAD.decode(text).unwrap_or_default();
    Policies::decode(&*bytes).unwrap_or_default()
}

//! Definitions of attributes: their types, and whether they are indexed.

use std::collections::BTreeMap;

use super::attribute::{NAME_RULE, Value, is_name};
use crate::error::{Error, Invalid};
use crate::timestamp::Timestamp;

/// The maximum number of a tenant's definitions.
const MAX_DEFINITIONS: usize = 200;

/// A tenant's definition of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributeDefinition {
    /// Whether it is indexed.
    pub indexed: bool,
    /// The required type of values; `None` allows any.
    pub value_type: Option<ValueType>,
    /// Whether users of one name with the same value of it are probably the same person.
    pub evidence: bool,
    /// Whether FindUsers finds users by its values.
    pub find: bool,
    /// The time when `indexed` changed, while the index is being updated.
    pub index_change: Option<Timestamp>,
}

/// The type of an attribute's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// See [`Value::String`].
    String,
    /// See [`Value::Int`].
    Int,
    /// See [`Value::Double`].
    Double,
    /// See [`Value::Bool`].
    Bool,
    /// See [`Value::Time`].
    Time,
    /// See [`Value::List`].
    List,
}

/// New definitions of a tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefinitionUpdate {
    /// Whether they replace all existing definitions.
    pub replace: bool,
    /// The definitions, by name.
    pub definitions: BTreeMap<String, AttributeDefinition>,
}

impl Default for AttributeDefinition {
    /// The definition of an attribute without one.
    fn default() -> Self {
        Self { indexed: true, value_type: None, evidence: false, find: false, index_change: None }
    }
}

impl AttributeDefinition {
    /// Whether it finds users if it is to.
    fn can_find(&self) -> bool {
        let is_found = !matches!(self.value_type, Some(ValueType::Bool | ValueType::Time));
        !self.find || (self.indexed && is_found)
    }
}

impl ValueType {
    /// The type of a value.
    pub const fn from_value(value: &Value) -> Self {
        match value {
            Value::String(_) => Self::String,
            Value::Int(_) => Self::Int,
            Value::Double(_) => Self::Double,
            Value::Bool(_) => Self::Bool,
            Value::Time(_) => Self::Time,
            Value::List(_) => Self::List,
        }
    }

    /// The message for values of another type.
    pub(crate) const fn rule(self) -> &'static str {
        match self {
            Self::String => "the tenant defines it as a text",
            Self::Int => "the tenant defines it as an integer",
            Self::Double => "the tenant defines it as a double",
            Self::Bool => "the tenant defines it as a bool",
            Self::Time => "the tenant defines it as a time",
            Self::List => "the tenant defines it as a list of texts",
        }
    }
}

impl DefinitionUpdate {
    /// Checks names and number.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let rule = match self.definitions.keys().all(|name| is_name(name)) {
            false => NAME_RULE,
            true if self.definitions.len() > MAX_DEFINITIONS => {
                "a tenant has at most 200 definitions"
            }
            true if !self.definitions.values().all(AttributeDefinition::can_find) => {
                "what finds users needs the index, and not the type bool or time"
            }
            true => return Ok(()),
        };
        Err(Error::invalid(Invalid::Policy, "policies.attribute_definitions", rule))
    }

    /// Applies the update at `now`.
    pub(crate) fn apply(
        &self,
        present: &mut BTreeMap<String, AttributeDefinition>,
        now: Timestamp,
    ) {
        let mut changed = self.definitions.clone();
        if self.replace {
            for name in present.keys() {
                changed.entry(name.clone()).or_default();
            }
        }
        for (name, definition) in changed {
            let before = present.get(&name).copied().unwrap_or_default();
            let is_change = before.indexed != definition.indexed;
            let index_change = if is_change { Some(now) } else { before.index_change };
            present.insert(name, AttributeDefinition { index_change, ..definition });
        }
        present.retain(|_, definition| *definition != AttributeDefinition::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::policies::Policies;

    const UNINDEXED: AttributeDefinition = AttributeDefinition {
        indexed: false,
        value_type: None,
        evidence: false,
        find: false,
        index_change: None,
    };

    fn time(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn define(policies: &mut Policies, name: &str, definition: AttributeDefinition, now: i64) {
        let definitions = BTreeMap::from([(name.to_owned(), definition)]);
        DefinitionUpdate { replace: false, definitions }.apply(&mut policies.attributes, time(now));
    }

    #[test]
    fn an_index_changes_with_its_definition() {
        let mut policies = Policies::default();
        let typed = AttributeDefinition { value_type: Some(ValueType::Int), ..Default::default() };
        define(&mut policies, "level", typed, 1);
        assert_eq!((policies.indexes("level"), policies.index_change()), (true, None));
        define(&mut policies, "bio", UNINDEXED, 2);
        assert_eq!((policies.indexes("bio"), policies.index_change()), (false, Some(time(2))));
        define(&mut policies, "bio", UNINDEXED, 3);
        assert_eq!(policies.index_change(), Some(time(2)), "the same definition again");
        policies.finish_index_changes(time(1));
        assert!(policies.is_index_changing("bio"), "the change is later");
        policies.finish_index_changes(time(2));
        assert!(!policies.is_index_changing("bio") && !policies.indexes("bio"));
    }

    #[test]
    fn a_removed_definition_stays_until_its_index_is_rebuilt() {
        let mut policies = Policies::default();
        define(&mut policies, "bio", UNINDEXED, 1);
        policies.finish_index_changes(time(1));
        DefinitionUpdate { replace: true, ..Default::default() }
            .apply(&mut policies.attributes, time(2));
        assert!(policies.is_index_changing("bio") && policies.indexes("bio"));
        policies.finish_index_changes(time(2));
        assert_eq!(policies, Policies::default());
    }

    #[test]
    fn values_of_other_types_are_rejected() {
        let mut policies = Policies::default();
        let typed = AttributeDefinition { value_type: Some(ValueType::Int), ..Default::default() };
        define(&mut policies, "level", typed, 1);
        let check = |name: &str, value| {
            policies.check_types(&BTreeMap::from([(name.to_owned(), value)])).is_ok()
        };
        assert!(check("level", Value::Int(3)) && check("other", Value::Bool(true)));
        assert!(!check("level", Value::Double(3.0)) && !check("level", Value::List(vec![])));
    }
}

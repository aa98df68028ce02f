//! Definitions of attributes: their type, and whether they are indexed.

use std::collections::BTreeMap;

use super::attribute::{NAME_RULE, Value, is_name};
use super::policies::Policies;
use super::timestamp::Timestamp;
use crate::error::{Error, Invalid};

/// Definitions that a tenant may have.
const MOST: usize = 200;

/// A tenant's definition of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttributeDefinition {
    /// Whether it is indexed.
    pub indexed: bool,
    /// The type that values must have, if not any.
    pub value_type: Option<ValueType>,
    /// When `indexed` changed, until the index of all users has followed.
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
    /// Whether they replace all definitions that the tenant has.
    pub replace: bool,
    /// The definitions, by name.
    pub definitions: BTreeMap<String, AttributeDefinition>,
}

impl Default for AttributeDefinition {
    /// The definition of an attribute that the tenant has not defined.
    fn default() -> Self {
        Self { indexed: true, value_type: None, index_change: None }
    }
}

impl ValueType {
    /// The type of a value.
    pub const fn of(value: &Value) -> Self {
        match value {
            Value::String(_) => Self::String,
            Value::Int(_) => Self::Int,
            Value::Double(_) => Self::Double,
            Value::Bool(_) => Self::Bool,
            Value::Time(_) => Self::Time,
            Value::List(_) => Self::List,
        }
    }

    /// The rule for values of an attribute of this type.
    const fn rule(self) -> &'static str {
        match self {
            Self::String => "the tenant defines it as a text",
            Self::Int => "the tenant defines it as a whole number",
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
        let fault = |rule: &str| {
            Err(Error::invalid(Invalid::Policy, "policies.attribute_definitions", rule))
        };
        match self.definitions.keys().all(|name| is_name(name)) {
            false => fault(NAME_RULE),
            true if self.definitions.len() > MOST => fault("a tenant has at most 200 definitions"),
            true => Ok(()),
        }
    }

    /// Applies the update at `now`.
    pub(crate) fn apply(&self, policies: &mut Policies, now: Timestamp) {
        let own = &mut policies.attributes;
        let removed =
            own.keys().filter(|name| self.replace && !self.definitions.contains_key(*name));
        let removed: Vec<_> =
            removed.map(|name| (name.clone(), AttributeDefinition::default())).collect();
        let given = self.definitions.iter().map(|(name, definition)| (name.clone(), *definition));
        for (name, definition) in given.chain(removed) {
            let before = own.get(&name).copied().unwrap_or_default();
            let is_change = before.indexed != definition.indexed;
            let index_change = if is_change { Some(now) } else { before.index_change };
            own.insert(name, AttributeDefinition { index_change, ..definition });
        }
        own.retain(|_, definition| *definition != AttributeDefinition::default());
    }
}

impl Policies {
    /// Whether the attribute of this name is indexed, or is to be.
    pub fn indexes(&self, name: &str) -> bool {
        self.attributes.get(name).is_none_or(|definition| definition.indexed)
    }

    /// Whether the index has not yet followed the definition of the attribute of this name.
    pub fn is_index_changing(&self, name: &str) -> bool {
        self.attributes.get(name).is_some_and(|definition| definition.index_change.is_some())
    }

    /// When the last of the changes was made that the index has not yet followed.
    pub fn index_change(&self) -> Option<Timestamp> {
        self.attributes.values().filter_map(|definition| definition.index_change).max()
    }

    /// Notes that the index has followed the changes up to `since`.
    pub(crate) fn finish_index_changes(&mut self, since: Timestamp) {
        for definition in self.attributes.values_mut() {
            definition.index_change = definition.index_change.filter(|time| *time > since);
        }
        self.attributes.retain(|_, definition| *definition != AttributeDefinition::default());
    }

    /// Checks the types of new values.
    ///
    /// # Errors
    /// [`Error::Invalid`] for the first that has another type than its definition says.
    pub(crate) fn check_types<'a>(
        &self,
        attributes: impl IntoIterator<Item = (&'a String, &'a Value)>,
    ) -> Result<(), Error> {
        if self.attributes.is_empty() {
            return Ok(());
        }
        for (name, value) in attributes {
            let wanted = self.attributes.get(name).and_then(|definition| definition.value_type);
            if let Some(wanted) = wanted.filter(|wanted| *wanted != ValueType::of(value)) {
                let field = format!("user.attributes.{name}");
                return Err(Error::invalid(Invalid::Attribute, field, wanted.rule()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNINDEXED: AttributeDefinition =
        AttributeDefinition { indexed: false, value_type: None, index_change: None };

    fn time(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn define(policies: &mut Policies, name: &str, definition: AttributeDefinition, now: i64) {
        let definitions = BTreeMap::from([(name.to_owned(), definition)]);
        DefinitionUpdate { replace: false, definitions }.apply(policies, time(now));
    }

    #[test]
    fn an_index_changes_when_its_definition_does() {
        let mut policies = Policies::default();
        let typed = AttributeDefinition { value_type: Some(ValueType::Int), ..Default::default() };
        define(&mut policies, "level", typed, 1);
        assert_eq!((policies.indexes("level"), policies.index_change()), (true, None));
        define(&mut policies, "bio", UNINDEXED, 2);
        assert_eq!((policies.indexes("bio"), policies.index_change()), (false, Some(time(2))));
        define(&mut policies, "bio", UNINDEXED, 3);
        assert_eq!(policies.index_change(), Some(time(2)), "told again, nothing changes");
        policies.finish_index_changes(time(1));
        assert!(policies.is_index_changing("bio"), "told after the change that was made");
        policies.finish_index_changes(time(2));
        assert!(!policies.is_index_changing("bio") && !policies.indexes("bio"));
    }

    #[test]
    fn a_definition_stays_until_its_index_is_made_again() {
        let mut policies = Policies::default();
        define(&mut policies, "bio", UNINDEXED, 1);
        policies.finish_index_changes(time(1));
        DefinitionUpdate { replace: true, ..Default::default() }.apply(&mut policies, time(2));
        assert!(policies.is_index_changing("bio") && policies.indexes("bio"));
        policies.finish_index_changes(time(2));
        assert_eq!(policies, Policies::default());
    }

    #[test]
    fn values_of_other_types_are_refused() {
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

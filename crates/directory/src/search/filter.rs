//! Filters: conditions that are joined.

use super::condition::{Condition, Subject};
use super::field::Field;
use super::lead::Lead;
use super::parser;
use super::range::Range;
use crate::error::Error;
use crate::model::user::User;
use polynym_identifier::Rules;

/// A condition on users. An empty filter matches all.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter(pub(super) Expression);

#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// All of these hold; none of them is an `All` itself.
    All(Vec<Self>),
    /// One of these holds.
    Any(Vec<Self>),
    /// This does not hold.
    Not(Box<Self>),
    /// A condition.
    Is(Condition),
}

impl Filter {
    /// Reads a filter. Identifiers are normalised by `rules`: those that the store has, and those
    /// to which it is moved now, if it is.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the place of the fault.
    pub fn parse(text: &str, rules: &[Rules]) -> Result<Self, Error> {
        parser::parse(text, rules).map(Self)
    }

    /// Whether a user matches. This decides for every store.
    pub fn matches(&self, user: &User) -> bool {
        self.0.matches(user)
    }

    /// The leads that this filter allows, each of which finds all users that match; none where only
    /// [`Lead::All`] does. Equalities come first.
    pub fn leads(&self) -> Vec<Lead> {
        let conditions = self.conjuncts().into_iter();
        let single = |condition: &&Condition| condition.single_range().is_some();
        let (ranges, others): (Vec<_>, Vec<_>) = conditions.partition(single);
        let mut leads: Vec<_> = others.into_iter().filter_map(Condition::lead).collect();
        leads.extend([Field::DisplayName, Field::CreateTime].into_iter().filter_map(|field| {
            let own = ranges.iter().filter_map(|condition| condition.single_range());
            let own = own.filter(|(of, _)| **of == field).map(|(_, range)| range.clone());
            let range = own.reduce(|a, b| a.intersection(&b))?;
            Some(Lead::of_range(field, range))
        }));
        leads.sort_by_key(|lead| !lead.is_equality());
        let mut distinct: Vec<Lead> = Vec::with_capacity(leads.len());
        for lead in leads {
            if !distinct.contains(&lead) {
                distinct.push(lead);
            }
        }
        distinct
    }

    /// The names of the attributes in conditions.
    pub fn attributes(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.0.add_attributes(&mut names);
        names
    }

    /// The leads in whose order users stand by the value of `field`: the conditions on it, or its
    /// presence.
    pub fn ordered_leads(&self, field: &Field) -> Vec<Lead> {
        let mut leads = self.leads();
        leads.retain(|lead| lead.field() == Some(field));
        if leads.is_empty() {
            leads.push(Lead::of_range(field.clone(), Range::ALL));
        }
        leads
    }

    /// The part of the filter that is left to decide for users that a lead finds.
    pub fn rest(&self, lead: &Lead) -> Self {
        let is_lead = |expression: &Expression| match expression {
            Expression::Is(condition) => condition.lead().as_ref() == Some(lead),
            _ => false,
        };
        let rest = self.parts().iter().filter(|part| !is_lead(part)).cloned();
        Self(Expression::all(rest.collect()))
    }

    /// The expressions of which all hold for a matching user.
    fn parts(&self) -> &[Expression] {
        match &self.0 {
            Expression::All(all) => all,
            other => std::slice::from_ref(other),
        }
    }

    /// The conditions that all matching users satisfy.
    fn conjuncts(&self) -> Vec<&Condition> {
        let mut conditions = Vec::new();
        for expression in self.parts() {
            if let Expression::Is(condition) = expression {
                conditions.push(condition);
            }
        }
        conditions
    }
}

impl Condition {
    /// The range of a field of which every user has one value: such ranges can be intersected.
    fn single_range(&self) -> Option<(&Field, &Range)> {
        match &self.subject {
            Subject::Field(field @ (Field::DisplayName | Field::CreateTime), range)
                if !self.differs && range.as_point().is_none() =>
            {
                Some((field, range))
            }
            _ => None,
        }
    }
}

impl Expression {
    fn matches(&self, user: &User) -> bool {
        match self {
            Self::All(all) => all.iter().all(|expression| expression.matches(user)),
            Self::Any(any) => any.iter().any(|expression| expression.matches(user)),
            Self::Not(inner) => !inner.matches(user),
            Self::Is(condition) => condition.matches(user),
        }
    }

    fn add_attributes<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Self::All(inner) | Self::Any(inner) => {
                inner.iter().for_each(|expression| expression.add_attributes(names));
            }
            Self::Not(inner) => inner.add_attributes(names),
            Self::Is(Condition { subject: Subject::Field(field, _), .. }) => {
                names.extend(field.attribute());
            }
            Self::Is(_) => {}
        }
    }

    /// All of these hold.
    pub fn all(expressions: Vec<Self>) -> Self {
        let parts = |expression| match expression {
            Self::All(all) => all,
            other => vec![other],
        };
        let mut all: Vec<_> = expressions.into_iter().flat_map(parts).collect();
        match (all.len(), all.pop()) {
            (1, Some(only)) => only,
            (_, last) => {
                all.extend(last);
                Self::All(all)
            }
        }
    }

    /// One of these holds.
    pub fn any(mut expressions: Vec<Self>) -> Self {
        match (expressions.len(), expressions.pop()) {
            (1, Some(only)) => only,
            (_, last) => {
                expressions.extend(last);
                Self::Any(expressions)
            }
        }
    }
}

//! Filters: conditions joined by AND, OR and NOT.

use super::condition::{Condition, Subject};
use super::field::Field;
use super::lead::AccessPath;
use super::parser;
use super::range::Range;
use super::scalar::Class;
use crate::error::Error;
use crate::model::user::User;
use polynym_identifier::Rules;

/// A condition on users. An empty filter matches all.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter(pub(super) Expression);

#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// All of these hold. None is an `All` itself.
    All(Vec<Self>),
    /// One of these holds.
    Any(Vec<Self>),
    /// This does not hold.
    Not(Box<Self>),
    /// A condition.
    Is(Condition),
}

impl Filter {
    /// Parses a filter. Identifiers are normalised by each of `rules`: those of the store, and
    /// during a renormalisation those of its target.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the position of the error.
    pub fn parse(text: &str, rules: &[Rules]) -> Result<Self, Error> {
        parser::parse(text, rules).map(Self)
    }

    /// Whether a user matches. All stores use this.
    pub fn matches(&self, user: &User) -> bool {
        self.0.matches(user)
    }

    /// The access paths that find all matching users, equalities first; empty if only
    /// [`AccessPath::All`] does.
    pub fn access_paths(&self) -> Vec<AccessPath> {
        let (ranges, others): (Vec<_>, Vec<_>) =
            self.conjuncts().into_iter().partition(|condition| condition.single_range().is_some());
        let mut paths: Vec<_> = others.into_iter().filter_map(Condition::access_path).collect();
        paths.extend([Field::DisplayName, Field::CreateTime].into_iter().filter_map(|field| {
            let range = ranges
                .iter()
                .filter_map(|condition| condition.single_range())
                .filter(|(ranged, _)| **ranged == field)
                .map(|(_, range)| range.clone())
                .reduce(|a, b| a.intersection(&b))?;
            Some(AccessPath::of_range(field, range))
        }));
        paths.sort_by_key(|path| !path.is_equality());
        let mut distinct: Vec<AccessPath> = Vec::with_capacity(paths.len());
        for path in paths {
            if !distinct.contains(&path) {
                distinct.push(path);
            }
        }
        distinct
    }

    /// Whether each user that matches has exactly one index entry on a path, and no other user has
    /// one.
    pub fn is_counted_by(&self, path: &AccessPath) -> bool {
        let has_one_value = path
            .field()
            .is_some_and(|field| [Field::DisplayName, Field::CreateTime].contains(field));
        match self.parts() {
            [] => *path == AccessPath::All,
            [Expression::Is(condition)] => {
                let is_whole = matches!(condition.subject, Subject::Field(..))
                    && condition.access_path().as_ref() == Some(path);
                is_whole && (path.is_equality() || has_one_value)
            }
            // Ranges of one field, which the path intersects.
            parts => {
                let is_range = |part: &Expression| match part {
                    Expression::Is(condition) => condition.single_range().is_some(),
                    _ => false,
                };
                parts.iter().all(is_range) && self.access_paths() == [path.clone()]
            }
        }
    }

    /// The names of the attributes in conditions.
    pub fn attributes(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.0.add_attributes(&mut names);
        names
    }

    /// The attributes that are compared with values of one class, with that class.
    pub fn compared_classes(&self) -> Vec<(&Field, Class)> {
        let mut compared = Vec::new();
        self.0.add_classes(&mut compared);
        compared
    }

    /// The access paths that find users in the order of `field`: the conditions on it, else its
    /// presence.
    pub fn ordered_paths(&self, field: &Field) -> Vec<AccessPath> {
        let mut paths = self.access_paths();
        paths.retain(|path| path.field() == Some(field));
        if paths.is_empty() {
            paths.push(AccessPath::of_range(field.clone(), Range::ALL));
        }
        paths
    }

    /// The part of the filter that remains to be tested on the users that `path` finds.
    pub fn rest(&self, path: &AccessPath) -> Self {
        let is_path = |expression: &Expression| match expression {
            Expression::Is(condition) => condition.access_path().as_ref() == Some(path),
            _ => false,
        };
        let rest = self.parts().iter().filter(|part| !is_path(part)).cloned();
        Self(Expression::all(rest.collect()))
    }

    /// The expressions that all matching users satisfy.
    fn parts(&self) -> &[Expression] {
        match &self.0 {
            Expression::All(all) => all,
            other => std::slice::from_ref(other),
        }
    }

    /// The conditions that all matching users satisfy.
    fn conjuncts(&self) -> Vec<&Condition> {
        let conditions = self.parts().iter().filter_map(|expression| match expression {
            Expression::Is(condition) => Some(condition),
            _ => None,
        });
        conditions.collect()
    }
}

impl Condition {
    /// The range of a field with one value per user: such ranges can be intersected.
    fn single_range(&self) -> Option<(&Field, &Range)> {
        match &self.subject {
            Subject::Field(field @ (Field::DisplayName | Field::CreateTime), ranges)
                if !self.differs =>
            {
                let [range] = &ranges[..] else { return None };
                range.as_point().is_none().then_some((field, range))
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

    fn add_classes<'a>(&'a self, compared: &mut Vec<(&'a Field, Class)>) {
        match self {
            Self::All(inner) | Self::Any(inner) => {
                inner.iter().for_each(|expression| expression.add_classes(compared));
            }
            Self::Not(inner) => inner.add_classes(compared),
            Self::Is(Condition { subject: Subject::Field(field, ranges), .. }) => {
                let class = ranges.first().and_then(Range::class);
                let class = class.filter(|_| field.attribute().is_some());
                compared.extend(class.map(|class| (field, class)));
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

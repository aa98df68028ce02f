//! Why a search has found no user, in a line: a name or a type that no user has, or a condition
//! that no user satisfies.

use super::{MAX_PROBES, RequestContext};
use crate::error::Error;
use crate::model::policies::Policies;
use crate::search::folding::fold;
use crate::search::{AccessPath, Class, Field, Filter, Range, Scalar};
use crate::service::Directory;
use crate::service::scan_pace::Pace;

/// Attributes of a filter that are compared with those of the tenant.
const MAX_NAMES: usize = 8;
/// Names in one read.
const NAMES_PAGE: usize = 1_000;
/// Names that are compared: as many as a tenant may have.
const MAX_KNOWN_NAMES: usize = 10_000;
/// Names that a hint lists.
const LISTED_NAMES: usize = 5;
/// The typing errors of a name, and the length of the names that are compared.
const MAX_TYPOS: usize = 2;
const MAX_COMPARED_CHARS: usize = 64;

const CLASSES: [Class; 4] = [Class::Number, Class::String, Class::Bool, Class::Time];

impl Directory {
    /// The reason why no user matches, or an empty text if there is no simple one.
    pub(super) async fn no_match_hint(
        &self,
        context: &RequestContext<'_>,
        filter: &Filter,
        policies: &Policies,
    ) -> Result<String, Error> {
        if let Some(hint) = self.name_hint(context, filter).await? {
            return Ok(hint);
        }
        if let Some(hint) = self.type_hint(context, filter, policies).await? {
            return Ok(hint);
        }
        let mut paths = filter.access_paths();
        paths.retain(|path| is_indexed(path, policies));
        paths.truncate(MAX_PROBES);
        for path in &paths {
            if !self.has_entries(context, path).await? {
                let advice = self.path_advice(context, path).await?;
                return Ok(match path.field() == Some(&Field::NameForm) {
                    true => format!("no name has one of the words{advice}"),
                    false => format!("no user has {path}{advice}"),
                });
            }
        }
        Ok(match paths.len() {
            0 | 1 => String::new(),
            _ => "each condition has matches, but no user satisfies all of them".to_owned(),
        })
    }

    /// An attribute of the filter that no user of the tenant ever had.
    async fn name_hint(
        &self,
        context: &RequestContext<'_>,
        filter: &Filter,
    ) -> Result<Option<String>, Error> {
        let mut wanted = filter.attributes();
        wanted.truncate(MAX_NAMES);
        if wanted.is_empty() {
            return Ok(None);
        }
        let known = self.known_names(context).await?;
        let Some(missing) = wanted.into_iter().find(|name| !known.iter().any(|own| own == name))
        else {
            return Ok(None);
        };

        let field = |name: &str| Field::Attribute(name.to_owned()).to_string();
        let listed: Vec<_> = known.iter().take(LISTED_NAMES).map(|name| field(name)).collect();
        let more = if known.len() > LISTED_NAMES { ", ..." } else { "" };
        let advice = match nearest(missing, &known).await {
            Some(near) => format!("; there is {}", field(near)),
            None if known.is_empty() => String::new(),
            None => format!("; there are {}{more}", listed.join(", ")),
        };
        Ok(Some(format!("no user has {}{advice}", field(missing))))
    }

    /// The names of the tenant's attributes.
    async fn known_names(&self, context: &RequestContext<'_>) -> Result<Vec<String>, Error> {
        let mut names: Vec<String> = Vec::new();
        loop {
            let after = names.last().map_or("", String::as_str);
            let store = &self.backend.tenants;
            let page = store.attribute_names(&context.tenant, after, NAMES_PAGE).await?;
            let is_last = page.len() < NAMES_PAGE;
            names.extend(page);
            if is_last || names.len() >= MAX_KNOWN_NAMES {
                return Ok(names);
            }
        }
    }

    /// An attribute that is compared with a value of another type than its own.
    async fn type_hint(
        &self,
        context: &RequestContext<'_>,
        filter: &Filter,
        policies: &Policies,
    ) -> Result<Option<String>, Error> {
        for (field, class) in filter.compared_classes().into_iter().take(MAX_NAMES) {
            let is_indexed = field.attribute().is_some_and(|name| policies.indexes(name));
            if !is_indexed {
                continue;
            }
            let mut present = Vec::new();
            for own in CLASSES {
                let path = AccessPath::of_range(field.clone(), Range::of_class(own));
                if self.has_entries(context, &path).await? {
                    present.push(own);
                }
            }
            if present.iter().any(|own| *own != class) {
                let names: Vec<_> = present.iter().map(|own| plural(*own)).collect();
                let advice = match present[..] {
                    [Class::String] => ": write the value in quotes",
                    [Class::Number | Class::Bool] => ": write the value without quotes",
                    [Class::Time] => ": write a time such as 2026-01-31T12:00:00Z, without quotes",
                    _ => "",
                };
                let (types, wanted) = (names.join(" and "), singular(class));
                let hint = format!("{field} has {types}, and is compared with {wanted}{advice}");
                return Ok(Some(hint));
            }
        }
        Ok(None)
    }

    /// A filter that finds the display name instead.
    async fn path_advice(
        &self,
        context: &RequestContext<'_>,
        path: &AccessPath,
    ) -> Result<String, Error> {
        let (field, text) = match path {
            AccessPath::Equals { field, value: Scalar::String(text) } => (field, text),
            _ => return Ok(String::new()),
        };
        match field {
            Field::NameForm => {
                let start = AccessPath::of_range(field.clone(), Range::prefix(text));
                let is_start = self.has_entries(context, &start).await?;
                let advice = format!("; display_name:\"{text}*\" finds words that begin with it");
                Ok(advice).map(|advice| if is_start { advice } else { String::new() })
            }
            Field::DisplayName => {
                let words = format!("display_name:{}", Scalar::String(text.clone()));
                let Ok(filter) = self.parse_filter(&words).await else { return Ok(String::new()) };
                for path in filter.access_paths() {
                    if !self.has_entries(context, &path).await? {
                        return Ok(String::new());
                    }
                }
                Ok(format!("; {words} finds its words, without accents and case"))
            }
            _ => Ok(String::new()),
        }
    }

    /// Whether a path finds a user.
    async fn has_entries(
        &self,
        context: &RequestContext<'_>,
        path: &AccessPath,
    ) -> Result<bool, Error> {
        Ok(self.backend.search.probe(&context.tenant, path, 1).await? > 0)
    }
}

fn is_indexed(path: &AccessPath, policies: &Policies) -> bool {
    path.field().and_then(Field::attribute).is_none_or(|name| policies.indexes(name))
}

/// The known name that is most like a typed one: the same but for case, accents and punctuation, or
/// with the fewest typing errors.
async fn nearest<'n>(typed: &str, known: &'n [String]) -> Option<&'n String> {
    let form = form(typed);
    let (mut best, mut pace) = (None, Pace::default());
    for name in known {
        pace.rest().await;
        let Some(typos) = typos(&form, &self::form(name)) else { continue };
        if best.is_none_or(|(fewest, _)| typos < fewest) {
            best = Some((typos, name));
        }
    }
    best.map(|(_, name)| name)
}

/// The typing errors between two names, if there are few for their lengths.
fn typos(a: &[char], b: &[char]) -> Option<usize> {
    let (shorter, longer) = (a.len().min(b.len()), a.len().max(b.len()));
    if longer - shorter > MAX_TYPOS {
        return None;
    }
    let text = |form: &[char]| form.iter().collect::<String>();
    let typos = strsim::osa_distance(&text(a), &text(b));
    (typos <= MAX_TYPOS.min(shorter / 3)).then_some(typos)
}

/// A name without case, accents and punctuation.
fn form(name: &str) -> Vec<char> {
    let folded = fold(name);
    folded.chars().filter(|c| c.is_alphanumeric()).take(MAX_COMPARED_CHARS).collect()
}

const fn plural(class: Class) -> &'static str {
    match class {
        Class::Number => "numbers",
        Class::String => "texts",
        Class::Bool => "bools",
        Class::Time => "times",
    }
}

const fn singular(class: Class) -> &'static str {
    match class {
        Class::Number => "a number",
        Class::String => "a text",
        Class::Bool => "a bool",
        Class::Time => "a time",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_nearest_name_is_the_same_but_for_case_accents_and_typos() {
        let known = ["Ort", "Größe", "E-Mail privat", "Land"].map(ToOwned::to_owned);
        for (typed, expected) in [
            ("ort", Some("Ort")),
            ("grosse", Some("Größe")),
            ("email_privat", Some("E-Mail privat")),
            ("Lnad", Some("Land")),
            ("Stadt", None),
            ("x", None),
        ] {
            assert_eq!(nearest(typed, &known).await.map(String::as_str), expected);
        }
    }
}

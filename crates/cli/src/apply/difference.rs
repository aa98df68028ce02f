//! The differences between policies.

use std::collections::{BTreeMap, BTreeSet};

use polynym_presentation::policy::POLICIES;
use polynym_presentation::{attribute, duration};
use polynym_proto::v1::{AttributeDefinition, Policies};

use super::reader::{DEFINITIONS, HANDLES, REGIONS};

/// A setting that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path, such as `undo_window` or `attribute_definitions.level`.
    pub path: String,
    /// The value before; none if there was none.
    pub before: Option<String>,
    /// The value after; none if there is none.
    pub after: Option<String>,
}

/// The paths of all policies in update masks.
pub fn paths() -> Vec<String> {
    let single = POLICIES.iter().map(|policy| policy.path);
    single.chain([HANDLES, REGIONS, DEFINITIONS]).map(str::to_owned).collect()
}

/// The differences between policies, single values first, in the order of their table.
pub fn between(before: &Policies, after: &Policies) -> Vec<Difference> {
    let mut differences = Vec::new();
    let mut add = |path: String, before: Option<String>, after: Option<String>| {
        if before != after {
            differences.push(Difference { path, before, after });
        }
    };
    for policy in POLICIES {
        let text = |policies: &Policies| policy.value(policies).text(duration::exact_argument);
        add(policy.path.to_owned(), Some(text(before)), Some(text(after)));
    }
    let is_listed = |policies: &Policies| match policies.reserved_handles {
        Some(_) => "listed".to_owned(),
        None => "default".to_owned(),
    };
    add(HANDLES.to_owned(), Some(is_listed(before)), Some(is_listed(after)));
    let regions = |policies: &Policies| match &policies.phone_regions[..] {
        [] => "none".to_owned(),
        regions => regions.join(" "),
    };
    add(REGIONS.to_owned(), Some(regions(before)), Some(regions(after)));
    let lists = [(handles(before), handles(after)), (definitions(before), definitions(after))];
    for (old, new) in lists {
        let paths: BTreeSet<_> = old.keys().chain(new.keys()).collect();
        for path in paths {
            add(path.clone(), old.get(path).cloned(), new.get(path).cloned());
        }
    }
    differences
}

/// The reserved handles, each with a path of its own.
fn handles(policies: &Policies) -> BTreeMap<String, String> {
    let handles = policies.reserved_handles.iter().flat_map(|reserved| &reserved.handles);
    handles.map(|handle| (format!("{HANDLES}.{handle}"), "reserved".to_owned())).collect()
}

/// The definitions of attributes by path. One with only a name is the same as none.
fn definitions(policies: &Policies) -> BTreeMap<String, String> {
    let is_own = |definition: &&AttributeDefinition| !is_default(definition);
    let path = |definition: &AttributeDefinition| {
        let type_name = match attribute::words(definition.r#type()) {
            any if any.argument.is_empty() => any.name,
            known => known.argument,
        };
        let text = attribute::definition(definition, type_name);
        (format!("{DEFINITIONS}.{}", definition.name), text)
    };
    policies.attribute_definitions.iter().filter(is_own).map(path).collect()
}

/// Whether an attribute without the definition would be the same.
pub fn is_default(definition: &AttributeDefinition) -> bool {
    let has_mark = definition.evidence || definition.find;
    definition.indexed.unwrap_or(true) && definition.r#type == 0 && !has_mark
}

#[cfg(test)]
mod tests {
    use super::super::reader::defaults;
    use super::*;
    use polynym_proto::v1::ReservedHandles;

    #[test]
    fn each_difference_is_found() {
        let before = defaults();
        assert_eq!(between(&before, &before), []);
        let mut after = before.clone();
        after.verified_wins = true;
        after.undo_window = None;
        after.reserved_handles = Some(ReservedHandles { handles: vec!["root".into()] });
        let definition = |name: &str, indexed| AttributeDefinition {
            name: name.into(),
            indexed,
            ..Default::default()
        };
        after.attribute_definitions = vec![definition("bio", Some(false)), definition("a", None)];
        let texts: Vec<_> = between(&before, &after)
            .into_iter()
            .map(|one| {
                let [before, after] = [one.before, one.after].map(Option::unwrap_or_default);
                format!("{} {before} {after}", one.path)
            })
            .collect();
        assert_eq!(
            texts[..3],
            ["verified_wins off on", "undo_window 7d 0d", "reserved_handles default listed"]
        );
        assert_eq!(texts[3], "reserved_handles.root  reserved");
        assert!(texts[4].starts_with("attribute_definitions.bio  any type, not indexed"));
        assert_eq!(texts.len(), 5);
    }
}

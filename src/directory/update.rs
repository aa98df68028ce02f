//! Which fields of a user an update sets, by its mask (AIP-134, AIP-161).

use std::collections::BTreeMap;

use super::size::{attributes, value};
use super::{Error, Invalid, User, Value, attribute};

/// New values for some of a user's fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Update {
    pub(super) display_name: Option<String>,
    pub(super) attributes: Option<BTreeMap<String, Value>>,
    /// Single attributes to set, or to remove.
    pub(super) edits: BTreeMap<String, Option<Value>>,
}

impl Update {
    /// The update that sets the fields of `paths` to what `display_name` and `attributes` say. Without a mask, those of
    /// the two that are not empty are set.
    ///
    /// # Errors
    /// [`Error::Invalid`] where a path names anything else.
    pub fn from_mask(
        mask: Option<&[String]>,
        display_name: String,
        attributes: BTreeMap<String, Value>,
    ) -> Result<Self, Error> {
        let Some(paths) = mask.filter(|paths| !paths.is_empty()) else {
            return Ok(Self {
                display_name: Some(display_name).filter(|name| !name.is_empty()),
                attributes: Some(attributes).filter(|map| !map.is_empty()),
                edits: BTreeMap::new(),
            });
        };
        let mut update = Self::default();
        for path in paths {
            update.add(path, &display_name, &attributes)?;
        }
        Ok(update)
    }

    fn add(&mut self, path: &str, name: &str, attributes: &BTreeMap<String, Value>) -> Result<(), Error> {
        match path {
            "*" => {
                self.display_name = Some(name.to_owned());
                self.attributes = Some(attributes.clone());
            }
            "display_name" => self.display_name = Some(name.to_owned()),
            "attributes" => self.attributes = Some(attributes.clone()),
            _ => {
                let attribute = attribute_path(path)?;
                self.edits.insert(attribute.to_owned(), attributes.get(attribute).cloned());
            }
        }
        Ok(())
    }

    /// The size in bytes of what a caller gave.
    pub(super) fn bytes(&self) -> usize {
        let edits = self.edits.iter().map(|(name, to)| name.len() + to.as_ref().map_or(0, value));
        let attributes = self.attributes.as_ref().map_or(0, attributes);
        self.display_name.as_ref().map_or(0, String::len) + attributes + edits.sum::<usize>()
    }

    pub(super) fn apply(&self, user: &mut User) {
        if let Some(name) = &self.display_name {
            user.display_name.clone_from(name);
        }
        if let Some(attributes) = &self.attributes {
            user.attributes.clone_from(attributes);
        }
        for (name, value) in &self.edits {
            match value {
                Some(value) => user.attributes.insert(name.clone(), value.clone()),
                None => user.attributes.remove(name),
            };
        }
    }
}

/// The attribute that a path such as `attributes.plan` or ``attributes.`a.b` `` names.
fn attribute_path(path: &str) -> Result<&str, Error> {
    let name = path
        .strip_prefix("attributes.")
        .map(|name| name.strip_prefix('`').and_then(|name| name.strip_suffix('`')).unwrap_or(name));
    match name {
        Some(name) if attribute::is_name(name) => Ok(name),
        Some(_) => Err(Error::invalid(Invalid::UpdateMask, "update_mask", attribute::NAME_RULE)),
        None => Err(Error::invalid(
            Invalid::UpdateMask,
            "update_mask",
            "a mask may name display_name, attributes, attributes.NAME or *; identities have calls of their own",
        )),
    }
}

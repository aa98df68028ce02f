//! Updates of a user's fields by masks (AIP-134, AIP-161).

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::error::{Error, Invalid};
use crate::model::attribute;
use crate::model::attribute::Value;
use crate::model::user::User;
use crate::size::{attributes, value};

/// New values for some of a user's fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Update {
    pub(crate) display_name: Option<String>,
    pub(crate) attributes: Option<BTreeMap<String, Value>>,
    /// Single attributes to set, or to remove.
    pub(crate) edits: BTreeMap<String, Option<Value>>,
}

impl Update {
    /// The update that sets the fields of `mask` to their values in `display_name` and
    /// `attributes`. Without a mask, it sets those of the two that are not empty.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a path names another field.
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
        update.check_spelling(&attributes)?;

        Ok(update)
    }

    fn add(
        &mut self,
        path: &str,
        name: &str,
        attributes: &BTreeMap<String, Value>,
    ) -> Result<(), Error> {
        match path {
            "*" => {
                self.display_name = Some(name.to_owned());
                self.attributes = Some(attributes.clone());
            }
            "display_name" => self.display_name = Some(name.to_owned()),
            "attributes" => self.attributes = Some(attributes.clone()),
            _ => {
                let attribute = attribute_path(path)?;
                let value = attributes.get(&*attribute).cloned();
                self.edits.insert(attribute.into_owned(), value);
            }
        }

        Ok(())
    }

    /// Rejects a mask that was `attributes.loginCount` in JSON. The JSON mapping of masks turns it
    /// into `attributes.login_count`, and would remove that attribute instead of setting the other.
    fn check_spelling(&self, attributes: &BTreeMap<String, Value>) -> Result<(), Error> {
        let removed = self.edits.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| name);
        for masked in removed {
            let mut unmasked = attributes.keys().filter(|name| !self.edits.contains_key(*name));
            if let Some(meant) = unmasked.find(|name| snake_case(name) == *masked) {
                let hex: String = meant.bytes().map(|byte| format!("{byte:02x}")).collect();
                return Err(Error::invalid(
                    Invalid::UpdateMask,
                    "update_mask",
                    format!(
                        "attributes.{masked} has no value, and attributes.{meant} is not in the \
                         mask: masks in JSON lose capitals, write attributes_hex.x{hex} for it"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// The size in bytes of the caller's input.
    pub(crate) fn bytes(&self) -> usize {
        let edits = self.edits.iter().map(|(name, to)| name.len() + to.as_ref().map_or(0, value));
        let attributes = self.attributes.as_ref().map_or(0, attributes);
        self.display_name.as_ref().map_or(0, String::len) + attributes + edits.sum::<usize>()
    }

    /// The attributes that get a value.
    pub(crate) fn values(&self) -> impl Iterator<Item = (&String, &Value)> {
        let edits = self.edits.iter().filter_map(|(name, to)| Some((name, to.as_ref()?)));
        self.attributes.iter().flatten().chain(edits)
    }

    pub(crate) fn apply(&self, user: &mut User) {
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

/// The name as the JSON mapping of masks spells it.
fn snake_case(name: &str) -> String {
    let part = |c: char| match c.is_ascii_uppercase() {
        true => format!("_{}", c.to_ascii_lowercase()),
        false => c.to_string(),
    };
    name.chars().map(part).collect()
}

/// The attribute of a path such as `attributes.plan`, ``attributes.`a.b` `` or
/// `attributes_hex.x706c616e`.
fn attribute_path(path: &str) -> Result<Cow<'_, str>, Error> {
    let plain = path.strip_prefix("attributes.").map(|name| {
        let quoted = name.strip_prefix('`').and_then(|name| name.strip_suffix('`'));
        // A star means all fields; a lone quote is a mistake.
        let bare = Some(name).filter(|name| !name.contains('`') && *name != "*");
        Cow::Borrowed(quoted.or(bare).unwrap_or_default())
    });
    let name = plain
        .or_else(|| path.strip_prefix("attributes_hex.x").map(|hex| Cow::Owned(from_hex(hex))));

    match name {
        Some(name) if attribute::is_name(&name) => Ok(name),
        Some(_) => Err(Error::invalid(Invalid::UpdateMask, "update_mask", attribute::NAME_RULE)),
        None => Err(Error::invalid(
            Invalid::UpdateMask,
            "update_mask",
            "a mask may name display_name, attributes, attributes.NAME or *; other calls change \
             identities",
        )),
    }
}

/// The text with these bytes in hex; empty, which is no valid name, if they are malformed.
fn from_hex(digits: &str) -> String {
    let byte = |pair: &[u8]| {
        std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok())
    };
    let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(byte).collect();
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn update(paths: &[&str], names: &[&str]) -> Result<Update, Error> {
        let mask: Vec<_> = paths.iter().map(ToString::to_string).collect();
        let attributes = names.iter().map(|name| (name.to_string(), Value::Bool(true))).collect();
        Update::from_mask(Some(&mask), String::new(), attributes)
    }

    #[test]
    fn a_name_respelled_by_json_is_rejected() {
        let message = update(&["attributes.login_count"], &["loginCount"]).unwrap_err().to_string();
        assert!(message.contains("attributes_hex.x6c6f67696e436f756e74"), "{message}");
        // Both are named, or no other attribute could be meant.
        assert!(
            update(&["attributes.login_count", "attributes.loginCount"], &["loginCount"]).is_ok()
        );
        assert!(update(&["attributes.login_count"], &["plan"]).is_ok());
    }

    #[test]
    fn names_are_plain_quoted_or_in_hex() {
        for path in [
            "attributes.loginCount",
            "attributes.`loginCount`",
            "attributes_hex.x6c6f67696e436f756e74",
        ] {
            let edits = update(&[path], &["loginCount"]).unwrap().edits;
            assert_eq!(
                edits.into_iter().collect::<Vec<_>>(),
                [("loginCount".to_owned(), Some(Value::Bool(true)))]
            );
        }
        for path in
            ["attributes_hex.x6", "attributes_hex.xzz", "attributes_hex.xff", "attributes_hex.6c"]
        {
            assert!(update(&[path], &[]).is_err(), "{path}");
        }
    }
}

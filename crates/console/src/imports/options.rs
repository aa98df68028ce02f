//! The options of an import, as the form has them.

use polynym_proto::v1;
use polynym_proto::v1::import_users_request::Options;

use crate::form::Form;

/// The options of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// `reject` or `skip-identity`.
    pub on_conflict: String,
    /// `reject`, `skip`, `update`, `replace` or `fill`.
    pub on_existing: String,
    /// The field by which a line finds its user; empty for all identities.
    pub key: String,
}

impl ImportOptions {
    /// The options in a form; these where it has none. What both lack is what is safest.
    pub fn with(&self, form: &Form) -> Self {
        let text = |name: &str, own: &str| {
            if form.has(name) { form.get(name).to_owned() } else { own.to_owned() }
        };
        let one_of = |name: &str, own: &str, known: &[&str]| {
            let value = text(name, own);
            known.iter().find(|known| **known == value).unwrap_or(&known[0]).to_string()
        };
        let known = ["reject", "skip", "update", "replace", "fill"];
        let on_existing = one_of("on_existing", &self.on_existing, &known);
        let key = text("key", &self.key);
        Self {
            on_conflict: one_of("on_conflict", &self.on_conflict, &["reject", "skip-identity"]),
            key: if on_existing == "reject" { String::new() } else { key },
            on_existing,
        }
    }

    /// The options of the call.
    pub fn message(&self, tenant: &str, validate_only: bool) -> Options {
        let on_conflict = match &*self.on_conflict {
            "skip-identity" => v1::OnConflict::SkipIdentity,
            _ => v1::OnConflict::Reject,
        };
        let on_existing = match &*self.on_existing {
            "skip" => v1::OnExisting::Skip,
            "update" => v1::OnExisting::Update,
            "replace" => v1::OnExisting::Replace,
            "fill" => v1::OnExisting::Fill,
            _ => v1::OnExisting::Reject,
        };
        Options {
            tenant: tenant.to_owned(),
            on_conflict: on_conflict.into(),
            on_existing: on_existing.into(),
            key: self.key.clone(),
            validate_only,
            ..Options::default()
        }
    }
}

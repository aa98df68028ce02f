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
    /// The options in a form. What it lacks is what is safest.
    pub fn of(form: &Form) -> Self {
        let one_of = |name: &str, known: &[&str]| {
            let value = form.get(name);
            known.iter().find(|known| **known == value).unwrap_or(&known[0]).to_string()
        };
        let on_existing = one_of("on_existing", &["reject", "skip", "update", "replace", "fill"]);
        let key = if on_existing == "reject" { "" } else { form.get("key") };
        Self {
            on_conflict: one_of("on_conflict", &["reject", "skip-identity"]),
            key: key.to_owned(),
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

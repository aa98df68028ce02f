//! The words that names have, among several: one find of a bounded number of users.

use mongodb::bson::{RawBsonRef, RawDocument, doc};

use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::schema::attributes::{ATTRIBUTES, KEY, VALUE, has_element, key};
use crate::schema::bson::read_fields;
use crate::search::filters::{by_attributes, of_tenant};
use polynym_directory::{Tenant, search::Field};

/// The maximum number of users whose names are read.
const MAX_USERS: i64 = 64;
/// The field of a reply with the forms of a name.
const FORMS: &str = "f";

impl Collections {
    /// Those of `words` that are forms of names: of the first users who have one.
    pub async fn known_words(
        &self,
        tenant: &Tenant,
        words: &[String],
    ) -> Result<Vec<String>, Fault> {
        let Some(token) = self.field_token(tenant, &Field::NameForm).await? else {
            return Ok(Vec::new());
        };
        let own = doc! { "$eq": [format!("$$one.{KEY}"), key(token)] };
        let own = doc! { "input": format!("${ATTRIBUTES}"), "as": "one", "cond": own };
        let forms = doc! {
            "input": { "$filter": own }, "as": "one", "in": format!("$$one.{VALUE}"),
        };
        let mut options = self.time_limit();
        (options.limit, options.hint) = (Some(MAX_USERS), Some(by_attributes()));
        options.projection = Some(doc! { FORMS: { "$map": forms } });
        let one_of_them = doc! { VALUE: { "$in": words } };
        let filter = of_tenant(tenant, has_element(token, one_of_them));
        let mut known = Vec::new();
        for user in &self.find_documents(&self.users, filter, options).await? {
            known.extend(forms_of(user)?.into_iter().filter(|form| words.contains(form)));
        }
        known.sort_unstable();
        known.dedup();
        Ok(known)
    }
}

/// The forms of a name in a reply.
fn forms_of(user: &RawDocument) -> Result<Vec<String>, Fault> {
    let [forms] = read_fields(user, [FORMS])?;
    let Some(forms) = forms.and_then(RawBsonRef::as_array) else { return Ok(Vec::new()) };
    let text = |form: RawBsonRef<'_>| form.as_str().map(ToOwned::to_owned);
    let texts = forms.into_iter().map(|form| Ok::<_, Fault>(text(form.map_err(Fault::damaged)?)));
    Ok(texts.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

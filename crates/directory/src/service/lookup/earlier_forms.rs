//! Identifiers that the store's rules reject, but that users still have: in a form of earlier
//! rules, or as a phone number of earlier numbering plans.

use std::time::Duration;

use tokio::task::yield_now;

use crate::error::Error;
use crate::model::claim::Claim;
use crate::model::tenant::Tenant;
use crate::service::Directory;
use crate::service::context::RequestContext;
use crate::service::lookup::read::{FULL, YIELD_EVERY, parse};
use crate::stores::{Consistency, View};
use polynym_identifier::{Identifier, IdentityKey, Kind, RawIdentifier, Rules};

impl Directory {
    /// The identifier of a user that a call names: by `rules` or, if they reject it, in the form in
    /// which a user still has it.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::Unavailable`].
    pub(crate) async fn named_identifier(
        &self,
        rules: Rules,
        context: &RequestContext<'_>,
        field: &str,
        raw: Option<RawIdentifier<'_>>,
    ) -> Result<Identifier, Error> {
        let rejected = match parse(rules, field, raw) {
            Ok(identifier) => return Ok(identifier),
            Err(error) => error,
        };
        let kept = self.kept_identifiers(rules, &context.tenant, raw.as_slice()).await?;
        kept.into_iter().flatten().next().ok_or(rejected)
    }

    /// For each identifier that `rules` reject, the form in which a user still has it.
    ///
    /// # Errors
    /// [`Error::Unavailable`].
    pub(crate) async fn kept_identifiers(
        &self,
        rules: Rules,
        tenant: &Tenant,
        raw: &[RawIdentifier<'_>],
    ) -> Result<Vec<Option<Identifier>>, Error> {
        let mut owned = self.earlier_claims(rules, tenant, raw).await?;
        owned.retain(|(_, _, claim)| claim.resolves_to().is_some());
        let forms: Vec<_> = owned.into_iter().map(|(n, form, _)| (n, form)).collect();
        let urls: Vec<_> = forms.iter().map(|(_, form)| form).filter(|form| is_url(form)).collect();
        let mut displays = self.displays(tenant, &urls).await?.into_iter();
        let mut kept = vec![None; raw.len()];
        for (n, form) in forms {
            let is_named = match is_url(&form) {
                true => {
                    let display = displays.next().flatten();
                    display.is_some_and(|display| form.is_named_by(raw[n], &display))
                }
                false => true,
            };
            if kept[n].is_none() && is_named {
                kept[n] = Some(form);
            }
        }
        Ok(kept)
    }

    /// The form in which an identifier is held, if one is.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the rules reject the identifier and no form is held;
    /// [`Error::Unavailable`].
    pub(crate) async fn held_identifier(
        &self,
        rules: Rules,
        tenant: &Tenant,
        raw: Option<RawIdentifier<'_>>,
    ) -> Result<Identifier, Error> {
        let parsed = parse(rules, "identifier", raw);
        if let Ok(identifier) = &parsed {
            let key = IdentityKey::new(tenant.as_str(), identifier);
            let claim = self.backend.reads.claims(&[key]).await?.into_iter().flatten().next();
            if claim.is_some_and(|claim| claim.hold.is_some()) {
                return parsed;
            }
        }
        let earlier = self.earlier_claims(rules, tenant, raw.as_slice()).await?;
        let held = earlier.into_iter().find(|(_, _, claim)| claim.hold.is_some());
        held.map_or(parsed, |(_, form, _)| Ok(form))
    }

    /// The claims on the earlier forms of identifiers, each with the number of its identifier. A
    /// claim by the present rules is not of the text that they reject, unless it is on a form that
    /// they reject too.
    async fn earlier_claims(
        &self,
        rules: Rules,
        tenant: &Tenant,
        raw: &[RawIdentifier<'_>],
    ) -> Result<Vec<(usize, Identifier, Claim)>, Error> {
        let mut forms = Vec::new();
        for (n, raw) in raw.iter().enumerate() {
            if n > 0 && n % YIELD_EVERY == 0 {
                yield_now().await;
            }
            forms.extend(rules.earlier_forms(*raw).into_iter().map(|form| (n, form)));
        }
        if forms.is_empty() {
            return Ok(Vec::new());
        }
        let key = |(_, form): &(usize, Identifier)| IdentityKey::new(tenant.as_str(), form);
        let claims = self.backend.reads.claims(&forms.iter().map(key).collect::<Vec<_>>()).await?;
        let earlier = forms.into_iter().zip(claims).filter_map(|((n, form), claim)| {
            let claim = claim.filter(|claim| !claim.guard)?;
            let is_earlier = claim.rules_version < rules.version() || !rules.has(&form);
            is_earlier.then_some((n, form, claim))
        });
        Ok(earlier.collect())
    }

    /// The URLs as typed of which users have these forms: earlier rules dropped parts of URLs that
    /// tell pages apart.
    async fn displays(
        &self,
        tenant: &Tenant,
        forms: &[&Identifier],
    ) -> Result<Vec<Option<String>>, Error> {
        let keys: Vec<_> =
            forms.iter().map(|form| IdentityKey::new(tenant.as_str(), form)).collect();
        let (lookups, latest) = (&self.backend.lookups, Consistency::Latest);
        let mut displays = Vec::with_capacity(keys.len());
        // A truncated answer omits the last users.
        while displays.len() < keys.len() {
            let rest = &keys[displays.len()..];
            let resolved = lookups.resolve(rest, latest, View::Basic, Duration::ZERO).await?;
            if resolved.found.is_empty() {
                return Err(FULL);
            }
            for found in resolved.found {
                displays.push(found?.map(|found| found.display().to_owned()));
            }
        }
        Ok(displays)
    }
}

fn is_url(form: &Identifier) -> bool {
    form.kind() == Kind::Url
}

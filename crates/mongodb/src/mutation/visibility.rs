//! The visibility of acknowledged mutations. A commit over several shards is acknowledged once all
//! of them have applied it. But another router that is asked for the outcome asks the first shard
//! that has written: unless this shard coordinates the commit, it answers as soon as it has applied
//! its own part (SERVER-99782), and another shard may still show the documents from before. The
//! same holds for a record that shows that a mutation has happened.

use locality_uuid::LocalityId;
use mongodb::Collection;
use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};

use crate::client::error::Fault;
use crate::command::write::MAX_STATEMENT_DOCUMENTS;
use crate::database::collections::Collections;
use crate::database::ordered::OrderedFinds;
use crate::database::times::Times;
use crate::schema::bson::{by_id, id_value, key_value};
use crate::schema::fields::{REVISION, USER};
use polynym_directory::{Identity, Mutation, Outcome, Tenant, Write};
use polynym_identifier::IdentityKey;

/// The documents of mutations that look-ups begin with. Reads of other documents follow links from
/// these, and wait themselves.
#[derive(Clone, Default)]
pub struct Written {
    users: Vec<LocalityId>,
    claims: Vec<IdentityKey>,
    tenant: Option<Tenant>,
}

impl Written {
    /// Adds what an earlier attempt at a mutation may have changed, with its outcome.
    pub fn add_earlier(&mut self, mutation: &Mutation, outcome: &Outcome) {
        let needs = mutation.needs();
        self.users.extend(needs.users);
        self.claims.extend(needs.claims);
        if needs.tenant {
            self.tenant = Some(mutation.tenant.clone());
        }
        if let Some(user) = &outcome.user {
            let key =
                |identity: &Identity| IdentityKey::new(user.tenant.as_str(), &identity.identifier);
            self.users.push(user.id);
            self.claims.extend(user.identities.iter().map(key));
        }
    }

    fn add(&mut self, write: &Write, tenant: &Tenant) {
        match write {
            Write::PutUser(record) => self.users.push(record.id()),
            Write::RemoveUser(id) => self.users.push(*id),
            Write::Claim(key, _) => self.claims.push(key.clone()),
            Write::PutTenant(_) | Write::RemoveTenant => self.tenant = Some(tenant.clone()),
            _ => {}
        }
    }

    const fn is_empty(&self) -> bool {
        self.users.is_empty() && self.claims.is_empty() && self.tenant.is_none()
    }
}

impl Collections {
    /// What these writes of a mutation, or of others of its tenant, change. Elsewhere than on a
    /// sharded cluster nothing has to be waited for.
    pub fn written<'w>(
        &self,
        writes: impl Iterator<Item = &'w Write>,
        mutation: &Mutation,
    ) -> Written {
        let mut written = Written::default();
        if self.is_routed {
            writes.for_each(|write| written.add(write, &mutation.tenant));
        }
        written
    }

    /// Waits until all shards show what was written before `times`.
    ///
    /// # Errors
    /// [`Fault`]: some of it may not be visible yet.
    pub async fn wait_until_visible(&self, times: &Times, written: &Written) -> Result<(), Fault> {
        if !self.is_routed || written.is_empty() {
            return Ok(());
        }
        let mut finds = self.in_order_after(times).await?;
        self.read_written(&mut finds, written).await
    }

    /// Reads what was written before the times of `finds`: a find after a time waits for prepared
    /// transactions. It need not be linearizable: an old primary has the prepared transaction, or
    /// does not reach the time.
    ///
    /// # Errors
    /// [`Fault`]: some of it may not be visible yet.
    pub async fn read_written(
        &self,
        finds: &mut OrderedFinds,
        written: &Written,
    ) -> Result<(), Fault> {
        let users = written.users.iter().copied().map(id_value).collect();
        let claims = written.claims.iter().map(key_value).collect();
        let tenant = written.tenant.iter().map(|tenant| tenant.as_str().into()).collect();
        // A find of ids alone would read the index, which does not show prepared updates.
        self.read_all(finds, &self.users, users, doc! { REVISION: 1 }).await?;
        self.read_all(finds, &self.identities, claims, doc! { USER: 1 }).await?;
        self.read_all(finds, &self.tenants, tenant, doc! { REVISION: 1 }).await
    }

    async fn read_all(
        &self,
        finds: &mut OrderedFinds,
        from: &Collection<RawDocumentBuf>,
        ids: Vec<Bson>,
        projection: Document,
    ) -> Result<(), Fault> {
        for ids in ids.chunks(MAX_STATEMENT_DOCUMENTS) {
            let mut options = self.time_limit();
            options.projection = Some(projection.clone());
            options.batch_size = Some(ids.len() as u32 + 1);
            finds.find_documents(from, by_id(ids.to_vec()), options).await?;
        }
        Ok(())
    }
}

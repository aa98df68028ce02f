//! Many mutations in one transaction: those that only add what is not there, and of which nothing
//! else depends on what they read. Where that does not work out, each is left to a transaction of
//! its own: its request, by which it is known again, makes that safe, whatever became of this one.

use std::collections::{HashMap, HashSet};

use locality_uuid::LocalityId;
use tokio::time::Instant;

use super::collections::Collections;
use super::commit::commit;
use super::error::Fault;
use super::freshness::Freshness;
use super::schema::StoredRequest;
use super::transaction::Transaction;
use crate::directory::model::claim::ClaimWrite;
use crate::directory::mutation::Mutation;
use crate::directory::mutation::read_set::{
    Decision, Outcome, ReadRequest, ReadSet, Write, WriteSet,
};
use crate::identifier::IdentityKey;
use crate::store::searched::IndexedAttributes;

/// The write sets of mutations, each with its place; none where it is to have a transaction of its
/// own.
type WriteSets = Vec<Option<Box<WriteSet>>>;

impl Collections {
    /// Carries out those of the mutations that can share a transaction. For the others, for which
    /// nothing was done, there is no outcome.
    ///
    /// # Errors
    /// [`Fault`]: it is not known whether any of them happened.
    pub async fn mutate_together(
        &self,
        mutations: &[Mutation],
    ) -> Result<Vec<Option<Outcome>>, Fault> {
        let deadline = Instant::now() + self.timeout;
        let versions = self.fence.versions()?;
        let rules = versions.stored_rules();
        let is_alike = |mutation: &&Mutation| {
            let first = &mutations[0];
            (&mutation.tenant, mutation.tenant_since) == (&first.tenant, first.tenant_since)
                && mutation.policies == first.policies
                && mutation.request.is_some()
                && rules.check(mutation).is_ok()
        };
        if !mutations.iter().all(|mutation| is_alike(&mutation)) {
            return Ok(Vec::new());
        }

        let begun = Transaction::begin(self, &Freshness::default()).await?;
        let mut transaction = begun.under(versions);
        match self.write_together(&mut transaction, mutations, versions.has_tokens()).await {
            Ok(write_sets) => {
                let writes = write_sets.iter().flatten().flat_map(|write_set| &write_set.writes);
                let _pending = self.pending_write(writes);
                commit(transaction, deadline).await?;
                let outcome = |write_set: Option<Box<WriteSet>>| Some(write_set?.into_outcome());
                Ok(write_sets.into_iter().map(outcome).collect())
            }
            Err(fault) => {
                transaction.abort().await;
                Err(fault)
            }
        }
    }

    async fn write_together(
        &self,
        transaction: &mut Transaction<'_>,
        mutations: &[Mutation],
        has_tokens: bool,
    ) -> Result<WriteSets, Fault> {
        let (write_sets, repeated) = decide(transaction, mutations).await?;
        let written = || write_sets.iter().flatten();
        let users: Vec<_> = written().flat_map(|write_set| write_set.users()).collect();
        let names = if has_tokens && !users.is_empty() {
            let first = &mutations[0];
            match self.names_with(&first.tenant, first.tenant_since, &users).await? {
                Ok(names) => Some(names),
                // Each has to be refused for itself.
                Err(_) => return Ok(Vec::new()),
            }
        } else {
            None
        };

        let policies = &*mutations[0].policies;
        let tokens = names.as_deref().map(|names| IndexedAttributes { names, policies });
        let events = written().flat_map(|write_set| &write_set.events).map(|one| (one.user, one));
        transaction.insert_users(&users, &events.collect(), tokens).await?;
        let claims = written().flat_map(|write_set| &write_set.writes);
        let claims = claims.filter_map(|write| match write {
            Write::Claim(key, write) => Some((key, write)),
            _ => None,
        });
        let claims: Vec<_> = claims.collect();
        transaction.write_claims(&claims).await?;
        transaction.confirm_epoch().await?;
        let new = mutations.iter().zip(&write_sets).zip(&repeated);
        let new = new.filter(|(_, is_repeated)| !**is_repeated);
        let new = new.filter_map(|((mutation, write_set), _)| {
            let request = mutation.request.as_ref()?;
            Some((request, write_set.as_ref()?.subject, mutation.time))
        });
        transaction.remember_all(new.collect()).await?;

        for (key, write) in claims {
            self.hints.learn_write(key, write);
        }
        Ok(write_sets)
    }
}

/// Decides the mutations, and says which of them were carried out before.
async fn decide(
    transaction: &mut Transaction<'_>,
    mutations: &[Mutation],
) -> Result<(WriteSets, Vec<bool>), Fault> {
    let requests = mutations.iter().filter_map(|mutation| mutation.request.as_ref());
    let remembered = transaction.requests(requests).await?;
    let mut needs: Vec<_> = mutations.iter().map(claims_of).collect();
    let mut read_sets: Vec<_> = mutations.iter().map(|_| ReadSet::optimistic()).collect();
    let mut write_sets: WriteSets = mutations.iter().map(|_| None).collect();
    let mut repeated = vec![false; mutations.len()];
    let mut taken = Taken::default();
    // A mutation that needs further reads after that gets a transaction of its own.
    for _ in 0..2 {
        transaction.read_all(&mut needs, &mut read_sets).await?;
        for (n, mutation) in mutations.iter().enumerate() {
            if write_sets[n].is_some() {
                continue;
            }
            let decision = match before(&remembered, mutation) {
                Before::Never => mutation.decide(&read_sets[n]),
                Before::Done(subject) => {
                    repeated[n] = true;
                    mutation.decide_again(subject, &read_sets[n])
                }
                Before::Unclear => continue,
            };
            match decision {
                Ok(Decision::Ready(write_set)) if repeated[n] => write_sets[n] = Some(write_set),
                Ok(Decision::Ready(write_set)) => {
                    let is_alone = taken.take(mutation, &read_sets[n], &write_set);
                    write_sets[n] = Some(write_set).filter(|_| is_alone);
                }
                Ok(Decision::NeedsReads(more)) => needs[n] = more,
                Err(_) => {}
            }
        }
    }
    Ok((write_sets, repeated))
}

/// The claims that a mutation reads.
fn claims_of(mutation: &Mutation) -> ReadRequest {
    ReadRequest { claims: mutation.needs().claims, ..ReadRequest::default() }
}

/// Whether a request was carried out before.
enum Before {
    Never,
    Done(Option<LocalityId>),
    /// It was another one, or its time is over.
    Unclear,
}

fn before(remembered: &HashMap<LocalityId, StoredRequest>, mutation: &Mutation) -> Before {
    let Some(request) = &mutation.request else { return Before::Unclear };
    match remembered.get(&super::schema::request_key(request)) {
        None => Before::Never,
        Some(record)
            if record.request_hash == request.request_hash && !mutation.forgets(record.time) =>
        {
            Before::Done(record.subject)
        }
        Some(_) => Before::Unclear,
    }
}

/// The requests, users and claims that the mutations of a transaction add.
#[derive(Default)]
struct Taken<'m> {
    requests: HashSet<&'m str>,
    users: HashSet<LocalityId>,
    claims: HashSet<IdentityKey>,
}

impl<'m> Taken<'m> {
    /// Takes what a mutation adds. Returns false, and takes nothing, unless it only adds what no
    /// other of them adds, and writes all claims that it has read.
    fn take(&mut self, mutation: &'m Mutation, read_set: &ReadSet, write_set: &WriteSet) -> bool {
        let (mut users, mut claims) = (HashSet::new(), HashSet::new());
        for write in &write_set.writes {
            match write {
                Write::PutUser(record) if read_set.user(record.id()).is_none() => {
                    users.insert(record.id());
                }
                Write::Claim(key, ClaimWrite::Insert(_)) => {
                    claims.insert(key.clone());
                }
                _ => return false,
            }
        }

        let request = mutation.request.as_ref().map(|request| request.key.as_str());
        let is_taken = users.iter().any(|id| self.users.contains(id))
            || claims.iter().any(|key| self.claims.contains(key))
            || request.is_none_or(|request| self.requests.contains(request));
        let reads_more = mutation.needs().claims.iter().any(|key| !claims.contains(key));
        if is_taken || reads_more || users.is_empty() {
            return false;
        }
        self.requests.extend(request);
        self.users.extend(users);
        self.claims.extend(claims);
        true
    }
}

//! Many mutations in one transaction: those that only add documents, and depend on no other reads.
//! The others, and all if the transaction fails, have transactions of their own. Their requests
//! make that safe, whatever the outcome of this transaction.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use locality_uuid::LocalityId;
use tokio::time::Instant;

use crate::client::error::Fault;
use crate::database::collections::Collections;
use crate::database::commit::commit;
use crate::database::freshness::Freshness;
use crate::database::operations::Mongo;
use crate::database::transaction::Transaction;
use crate::mutation::visibility::Written;
use crate::schema::request::{StoredRequest, request_key};
use crate::schema::versions::Versions;
use polynym_directory::{
    ClaimWrite, Decision, Error, Mutation, Outcome, PriorRequest, ReadRequest, ReadSet, Write,
    WriteSet,
};
use polynym_identifier::IdentityKey;
use polynym_store_common::operations::Operation;
use polynym_store_common::searched::IndexedAttributes;

/// The write set of each mutation; `None` if it needs a transaction of its own.
type WriteSets = Vec<Option<Box<WriteSet>>>;

/// The limit of concurrent transactions of a call.
const MAX_CONCURRENT: usize = 8;

impl Mongo {
    /// Executes mutations: as many as possible in one transaction, each of the others in its own.
    /// Each is an operation.
    pub(crate) async fn all(&self, mutations: Vec<Mutation>) -> Vec<Result<Outcome, Error>> {
        let begun = Operation::Mutate.begin();
        let mutations = Arc::new(mutations);
        let mut done = self.mutate_together(mutations.clone()).await;
        done.resize_with(mutations.len(), || None);
        let each = Arc::unwrap_or_clone(mutations).into_iter().zip(done);
        let outcomes = each.map(|(mutation, done)| async move {
            let outcome = match done {
                Some(outcome) => Ok(outcome),
                None => self.mutate_alone(mutation).await,
            };
            begun.end(&outcome);
            outcome
        });
        stream::iter(outcomes.collect::<Vec<_>>()).buffered(MAX_CONCURRENT).collect().await
    }

    /// The outcomes of the mutations that shared a transaction.
    async fn mutate_together(&self, mutations: Arc<Vec<Mutation>>) -> Vec<Option<Outcome>> {
        if mutations.len() < 2 {
            return Vec::new();
        }
        let together = |collections: Arc<Collections>| async move {
            collections.mutate_together(&mutations).await
        };
        self.run_sharing(&self.shares.writes, together).await.unwrap_or_default()
    }
}

impl Collections {
    /// Executes the mutations that can share a transaction. The others have no outcome: nothing was
    /// written for them.
    ///
    /// # Errors
    /// [`Fault`]: it is unknown whether any of them happened.
    pub async fn mutate_together(
        &self,
        mutations: &[Mutation],
    ) -> Result<Vec<Option<Outcome>>, Fault> {
        let deadline = Instant::now() + self.timeout;
        let versions = self.version_guard.versions()?;
        let rules = versions.stored_rules();
        let is_alike = |mutation: &&Mutation| {
            let first = &mutations[0];
            (&mutation.tenant, mutation.tenant_since) == (&first.tenant, first.tenant_since)
                && mutation.policies == first.policies
                && mutation.request.is_some()
                && mutation.bulk.is_none()
                && rules.check(mutation).is_ok()
        };
        if !mutations.iter().all(|mutation| is_alike(&mutation)) {
            return Ok(Vec::new());
        }

        let (mut transaction, decided) =
            self.decide_together(mutations, versions, deadline).await?;
        match self.write_together(&mut transaction, mutations, decided).await {
            Ok(write_sets) => {
                let writes = write_sets.iter().flatten().flat_map(|write_set| &write_set.writes);
                let mut written = self.written(writes.clone(), &mutations[0]);
                let _pending = self.pending_write(writes);
                let commit = commit(transaction, deadline).await?;
                if !commit.was_resent {
                    written = Written::default();
                }
                let mut outcomes = Vec::with_capacity(write_sets.len());
                for (mutation, write_set) in mutations.iter().zip(write_sets) {
                    let is_new = write_set.as_ref().is_none_or(|set| set.completes_request());
                    let outcome = write_set.map(|write_set| write_set.into_outcome());
                    if let Some(outcome) = outcome.as_ref().filter(|_| !is_new) {
                        written.add_earlier(mutation, outcome);
                    }
                    outcomes.push(outcome);
                }
                self.wait_until_visible(&commit.times, &written).await?;
                Ok(outcomes)
            }
            Err(fault) => {
                transaction.abort().await;
                Err(fault)
            }
        }
    }

    /// Decides the mutations in a transaction. The answer to one that was carried out before comes
    /// from documents that the transaction does not write, and the snapshot of a router may lack
    /// their latest versions. If there is one, all are decided again, on a snapshot that has all
    /// writes which the shards of these documents have acknowledged.
    async fn decide_together(
        &self,
        mutations: &[Mutation],
        versions: Versions,
        deadline: Instant,
    ) -> Result<(Transaction<'_>, Decided), Fault> {
        let mut freshness = Freshness::default();
        let decide = async |freshness: &Freshness| {
            let begun = Transaction::begin(self, freshness, deadline).await?;
            let mut transaction = begun.with_versions(versions);
            match decide(&mut transaction, mutations).await {
                Ok(decided) => Ok((transaction, decided)),
                Err(fault) => {
                    transaction.abort().await;
                    Err(fault)
                }
            }
        };
        let (mut transaction, (write_sets, known)) = decide(&freshness).await?;
        if !self.is_routed || !known.contains(&true) {
            return Ok((transaction, (write_sets, known)));
        }
        transaction.record_into(&mut freshness);
        transaction.abort().await;
        let (transaction, (mut write_sets, repeated)) = decide(&freshness).await?;
        for n in (0..mutations.len()).filter(|n| repeated[*n] && !known[*n]) {
            // The shards of its other documents were not asked before.
            write_sets[n] = None;
        }
        Ok((transaction, (write_sets, repeated)))
    }

    async fn write_together(
        &self,
        transaction: &mut Transaction<'_>,
        mutations: &[Mutation],
        (write_sets, repeated): Decided,
    ) -> Result<WriteSets, Fault> {
        let written = || write_sets.iter().flatten();
        let users: Vec<_> = written().flat_map(|write_set| write_set.users()).collect();
        let first = &mutations[0];
        let names = self.names_with(&first.tenant, first.tenant_since, &users).await?;
        // Each is rejected in a transaction of its own.
        let Ok(names) = names else { return Ok(Vec::new()) };
        let tokens = IndexedAttributes { names: &names, policies: &first.policies };
        let events = written().flat_map(|write_set| &write_set.events).map(|one| (one.user, one));
        transaction.insert_users(first, &users, &events.collect(), tokens).await?;
        let writes = written().flat_map(|write_set| &write_set.writes);
        let claims: Vec<_> = writes
            .filter_map(|write| match write {
                Write::Claim(key, write) => Some((key, write)),
                _ => None,
            })
            .collect();
        transaction.write_claims(&claims).await?;
        let each = mutations.iter().zip(&write_sets).zip(&repeated);
        let requests = each.filter(|(_, is_repeated)| !**is_repeated).filter_map(|(new, _)| {
            let (mutation, write_set) = new;
            Some((mutation.request.as_ref()?, &**write_set.as_ref()?, mutation))
        });
        transaction.record_requests(requests.collect()).await?;

        for (key, write) in claims {
            self.hints.learn_write(key, write);
        }
        Ok(write_sets)
    }
}

/// The decisions, and which of the mutations were carried out before.
type Decided = (WriteSets, Vec<bool>);

/// Decides the mutations.
async fn decide(
    transaction: &mut Transaction<'_>,
    mutations: &[Mutation],
) -> Result<Decided, Fault> {
    let requests = mutations.iter().filter_map(|mutation| mutation.request.as_ref());
    let remembered = transaction.requests(requests).await?;
    let mut needs: Vec<_> = mutations.iter().map(claims_of).collect();
    let mut read_sets: Vec<_> = mutations.iter().map(|_| ReadSet::optimistic()).collect();
    let mut write_sets: WriteSets = mutations.iter().map(|_| None).collect();
    let mut repeated = vec![false; mutations.len()];
    let mut batch = BatchClaims::default();
    // A mutation that needs further reads has a transaction of its own.
    for _ in 0..2 {
        transaction.read_all(&mut needs, &mut read_sets).await?;
        for (n, mutation) in mutations.iter().enumerate() {
            if write_sets[n].is_some() {
                continue;
            }
            let decision = match prior_outcome(&remembered, mutation) {
                PriorOutcome::Never => mutation.decide(&read_sets[n]),
                PriorOutcome::Done(prior) => {
                    repeated[n] = true;
                    mutation.decide_again(prior, &read_sets[n])
                }
                PriorOutcome::Unknown => continue,
            };
            match decision {
                // One that is void is decided anew in a transaction of its own.
                Ok(Decision::Ready(write_set)) if repeated[n] => {
                    write_sets[n] =
                        Some(write_set).filter(|write_set| !write_set.completes_request());
                }
                Ok(Decision::Ready(write_set)) => {
                    let is_reserved = batch.reserve(mutation, &read_sets[n], &write_set);
                    write_sets[n] = Some(write_set).filter(|_| is_reserved);
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
enum PriorOutcome {
    Never,
    Done(PriorRequest),
    /// It was another request, or has expired.
    Unknown,
}

fn prior_outcome(
    remembered: &HashMap<LocalityId, StoredRequest>,
    mutation: &Mutation,
) -> PriorOutcome {
    let Some(request) = &mutation.request else { return PriorOutcome::Unknown };
    match remembered.get(&request_key(request)) {
        None => PriorOutcome::Never,
        Some(record)
            if record.request_hash == request.request_hash && !record.is_void_for(mutation) =>
        {
            PriorOutcome::Done(record.prior)
        }
        Some(_) => PriorOutcome::Unknown,
    }
}

/// The requests, users and claims that the mutations of a transaction add.
#[derive(Default)]
struct BatchClaims<'m> {
    requests: HashSet<&'m str>,
    users: HashSet<LocalityId>,
    claims: HashSet<IdentityKey>,
}

impl<'m> BatchClaims<'m> {
    /// Reserves what a mutation adds. Returns false, and reserves nothing, unless it only adds
    /// documents that no other mutation adds, and writes all claims that it has read.
    fn reserve(
        &mut self,
        mutation: &'m Mutation,
        read_set: &ReadSet,
        write_set: &WriteSet,
    ) -> bool {
        let (mut users, mut claims) = (HashSet::new(), HashSet::new());
        // Another mutation of the batch may add a user that it names.
        if mutation.names_other_users() {
            return false;
        }
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
        let is_reserved = users.iter().any(|id| self.users.contains(id))
            || claims.iter().any(|key| self.claims.contains(key))
            || request.is_none_or(|request| self.requests.contains(request));
        let reads_more = mutation.needs().claims.iter().any(|key| !claims.contains(key));
        if is_reserved || reads_more || users.is_empty() {
            return false;
        }
        self.requests.extend(request);
        self.users.extend(users);
        self.claims.extend(claims);
        true
    }
}

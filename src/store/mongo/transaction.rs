//! One transaction with the statements of a mutation: users first, then claims by their keys, then the request, so that
//! two transactions that want the same conflict early instead of waiting on each other.

use mongodb::bson::{Document, RawDocumentBuf, doc};
use mongodb::options::{
    Acknowledgment, ReadConcern, ReadPreference, SelectionCriteria, TransactionOptions, WriteConcern,
};
use mongodb::{ClientSession, Collection};

use super::Collections;
use super::error::Fault;
use super::schema::{
    ID, REVISION, StoredRequest, StoredUser, USER, by_id, claim, id_value, key_value, request, request_id, user_fields,
};
use crate::directory::{ClaimChanges, Mutation, Request, User};
use crate::locality::LocalityId;

pub struct Transaction<'c> {
    collections: &'c Collections,
    session: ClientSession,
}

impl<'c> Transaction<'c> {
    pub async fn begin(collections: &'c Collections) -> Result<Self, Fault> {
        let time = collections.timeout;
        let concern = WriteConcern::builder().w(Acknowledgment::Majority).journal(true).w_timeout(time).build();
        let options = TransactionOptions::builder()
            .read_concern(ReadConcern::snapshot())
            .write_concern(concern)
            .selection_criteria(SelectionCriteria::ReadPreference(ReadPreference::Primary))
            .max_commit_time(time);
        let mut session = collections.client.start_session().causal_consistency(false).await?;
        session.start_transaction().with_options(options.build()).await?;
        Ok(Self { collections, session })
    }

    /// The user with this id.
    pub async fn user(&mut self, id: LocalityId) -> Result<Option<StoredUser>, Fault> {
        let document = self.find_one(&self.collections.users, doc! { ID: id_value(id) }).await?;
        document.map(|document| StoredUser::read(&document)).transpose()
    }

    /// What is remembered of a request.
    pub async fn request(&mut self, request: &Request) -> Result<Option<StoredRequest>, Fault> {
        let document = self.find_one(&self.collections.requests, doc! { ID: request_id(request) }).await?;
        document.map(|document| StoredRequest::read(&document)).transpose()
    }

    async fn find_one(
        &mut self,
        from: &Collection<RawDocumentBuf>,
        filter: Document,
    ) -> Result<Option<RawDocumentBuf>, Fault> {
        let find = from.find_one(filter).max_time(self.collections.timeout);
        Ok(find.session(&mut self.session).await?)
    }

    /// Writes a user that is not there yet.
    pub async fn insert_user(&mut self, user: &User) -> Result<(), Fault> {
        let mut document = doc! { ID: id_value(user.id) };
        document.extend(user_fields(user, 0));
        self.collections.users.insert_one(raw(&document)?).session(&mut self.session).await?;
        Ok(())
    }

    /// Writes a user over the one of `revision`.
    pub async fn replace_user(&mut self, user: &User, revision: i64) -> Result<(), Fault> {
        let filter = doc! { ID: id_value(user.id), REVISION: revision };
        let fields = raw(&user_fields(user, revision + 1))?;
        let replaced = self.collections.users.replace_one(filter, fields).session(&mut self.session).await?;
        match replaced.matched_count {
            1 => Ok(()),
            _ => Err(Fault::damaged("a user changed inside a transaction that had read it")),
        }
    }

    /// Deletes the claims that `owner` gives up and inserts those that it takes.
    pub async fn change_claims(&mut self, owner: LocalityId, changes: &ClaimChanges) -> Result<(), Fault> {
        let identities = &self.collections.identities;
        if !changes.released.is_empty() {
            let mut filter = by_id(changes.released.iter().map(key_value).collect());
            filter.insert(USER, id_value(owner));
            identities.delete_many(filter).session(&mut self.session).await?;
        }
        if !changes.taken.is_empty() {
            let claims = changes.taken.iter().map(|key| raw(&claim(key, owner)));
            let claims = claims.collect::<Result<Vec<_>, _>>()?;
            identities.insert_many(claims).ordered(true).session(&mut self.session).await?;
        }
        Ok(())
    }

    /// Remembers that the mutation was carried out, in the place of what is there of a request whose time is over.
    pub async fn remember(&mut self, name: &Request, mutation: &Mutation) -> Result<(), Fault> {
        let record = raw(&request(name, mutation))?;
        let filter = doc! { ID: request_id(name) };
        let requests = &self.collections.requests;
        requests.replace_one(filter, record).upsert(true).session(&mut self.session).await?;
        Ok(())
    }

    /// Commits, or tries to again: a commit whose reply was lost can be sent a second time.
    pub async fn commit(&mut self) -> Result<(), Fault> {
        Ok(self.session.commit_transaction().await?)
    }

    /// Gives the transaction up. Where that fails, the server does it in its own time.
    pub async fn abort(mut self) {
        let _ = self.session.abort_transaction().await;
    }
}

fn raw(document: &Document) -> Result<RawDocumentBuf, Fault> {
    RawDocumentBuf::try_from(document).map_err(Fault::damaged)
}

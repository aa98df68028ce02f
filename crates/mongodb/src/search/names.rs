//! The names of attributes. A document has up to [`NAMES_PER_DOCUMENT`] names of one tenant in the
//! order of their tokens; only the tenant's newest document grows. Names are added before the
//! transaction of their mutation: an unused token costs nothing, and transactions on the newest
//! document would conflict.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use mongodb::Collection;
use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};
use mongodb::options::{FindOptions, ReadConcern, ReadPreference, SelectionCriteria};

use crate::client::error::Fault;
use crate::command::write::WriteCommand;
use crate::database::collections::Collections;
use crate::schema::bson::{key_of, raw};
use crate::schema::event::{last_token, restore_names};
use crate::schema::fields::{ID, NAMES};
use polynym_directory::{Error, Event, Record, Tenant, Timestamp};
use polynym_store_common::attribute_names::{AttributeId, KnownNames, MAX_NAMES};

/// Of a document of names: when its tenant was created; absent if the tenant was deleted.
pub const SINCE: &str = "s";
/// Of a document of names: the token of the first name.
pub const FIRST: &str = "l";
/// Of a document of names: the names.
pub const NAMES_FIELD: &str = "n";

/// The limit of names in a document.
const NAMES_PER_DOCUMENT: usize = 100;
/// The limit of attempts to add names. Each fails only because another server succeeds.
const MAX_ATTEMPTS: usize = 1_000;

/// The tenants of one find: each has at most [`MAX_NAMES`].
const TENANTS_PER_FIND: usize = 16;

/// The names of tenants that were read.
pub type ReadNames = HashMap<String, Result<Arc<KnownNames>, Fault>>;

/// A document of names.
struct Page {
    id: String,
    since: Option<i64>,
    first: AttributeId,
    names: Vec<String>,
}

impl Page {
    fn read(raw: &RawDocumentBuf) -> Result<Self, Fault> {
        let document = Document::try_from(raw.as_ref()).map_err(Fault::damaged)?;
        let names = document.get_array(NAMES_FIELD).map_err(Fault::damaged)?;
        Ok(Self {
            id: document.get_str(ID).map_err(Fault::damaged)?.to_owned(),
            since: document.get_datetime(SINCE).ok().map(|since| since.timestamp_millis()),
            first: document.get_i32(FIRST).map_err(Fault::damaged)? as AttributeId,
            names: names.iter().filter_map(Bson::as_str).map(str::to_owned).collect(),
        })
    }

    fn next(&self) -> AttributeId {
        self.first + self.names.len() as AttributeId
    }

    /// The number of the document among those of its tenant.
    fn number(&self) -> u32 {
        self.id.rsplit_once(',').and_then(|(_, number)| number.parse().ok()).unwrap_or_default()
    }

    /// The document that replaces the last one of a deleted tenant. It keeps its attribute ids from
    /// being reused.
    fn tombstone(&self) -> Document {
        doc! { ID: &self.id, FIRST: self.next() as i32, NAMES_FIELD: [] }
    }
}

/// The name of the tenant in the id of one of its documents.
fn tenant_of_page(id: &str) -> &str {
    id.rsplit_once(',').map_or(id, |(tenant, _)| tenant)
}

/// The id of a tenant's `number`th document.
fn page_id(tenant: &str, number: u32) -> String {
    format!("{tenant},{number:08}")
}

/// The names in a tenant's documents, without those of deleted tenants of the same name.
fn known_names(pages: &[Page]) -> KnownNames {
    let Some(last) = pages.last() else { return KnownNames::default() };
    let since = last.since.map_or(Timestamp::default(), Timestamp::from_millis);
    let Some(own) = pages.iter().find(|page| last.since.is_some() && page.since == last.since)
    else {
        return KnownNames::new(since, last.next());
    };
    let mut known = KnownNames::new(since, own.first);
    for page in pages.iter().filter(|page| page.since == last.since) {
        known.skip_to(page.first);
        for name in &page.names {
            known.push(name);
        }
    }
    known
}

/// The users' attribute names that are missing in a tenant created at `since`, each once.
fn missing<'r>(names: &KnownNames, since: Timestamp, users: &[&'r Record]) -> Vec<&'r str> {
    let all = users.iter().flat_map(|record| record.user.attributes.keys());
    let mut missing: Vec<&str> = all.map(String::as_str).collect();
    missing.retain(|name| !names.is_of(since) || names.id(name).is_none());
    missing.sort_unstable();
    missing.dedup();
    missing
}

impl Collections {
    /// The names of a tenant created at `since`. Adds those that only these users have. The inner
    /// error is a rejection.
    pub async fn names_with(
        &self,
        tenant: &Tenant,
        since: Timestamp,
        users: &[&Record],
    ) -> Result<Result<Arc<KnownNames>, Error>, Fault> {
        let name = tenant.as_str();
        let known = self.names.known(name);
        if missing(&known, since, users).is_empty() {
            return Ok(Ok(known));
        }

        for _ in 0..MAX_ATTEMPTS {
            let pages = self.pages(name).await?;
            let present = Arc::new(known_names(&pages));
            let new = missing(&present, since, users);
            self.names.learn(name, present.clone());
            if new.is_empty() {
                return Ok(Ok(present));
            }
            let before = if present.is_of(since) { present.names().len() } else { 0 };
            if before + new.len() > MAX_NAMES {
                return Ok(Err(Error::AttributeNamesFull { limit: MAX_NAMES }));
            }
            self.add_names(name, since, pages.last(), &new).await?;
        }

        Err(Fault::TimedOut)
    }

    /// Adds as many of these names as one document has room for, unless another server has added
    /// some of them.
    async fn add_names(
        &self,
        tenant: &str,
        since: Timestamp,
        last: Option<&Page>,
        new: &[&str],
    ) -> Result<(), Fault> {
        let created = mongodb::bson::DateTime::from_millis(since.as_millis());
        let newest = last.filter(|page| {
            page.since == Some(since.as_millis()) && page.names.len() < NAMES_PER_DOCUMENT
        });
        if let Some(page) = newest {
            let added = &new[..new.len().min(NAMES_PER_DOCUMENT - page.names.len())];
            let last_free = format!("{NAMES_FIELD}.{}", NAMES_PER_DOCUMENT - added.len());
            let filter = doc! {
                ID: &page.id,
                SINCE: created,
                NAMES_FIELD: { "$nin": added },
                last_free: { "$exists": false },
            };
            let push = doc! { "$push": { NAMES_FIELD: { "$each": added } } };
            self.execute(WriteCommand::update(NAMES, &filter, &push)?).await?;
            return Ok(());
        }

        let number = last.map_or(0, |page| page.number() + 1);
        let first = last.map_or(0, Page::next);
        let document = doc! {
            ID: page_id(tenant, number),
            SINCE: created,
            FIRST: first as i32,
            NAMES_FIELD: &new[..new.len().min(NAMES_PER_DOCUMENT)],
        };
        match self.execute(WriteCommand::insert(NAMES, [raw(&document)?])).await {
            Err(fault) if !fault.is_duplicate() => Err(fault),
            _ => Ok(()),
        }
    }

    /// Restores the names of attributes in the events of a tenant.
    pub async fn name_events(&self, tenant: &Tenant, events: &mut [Event]) -> Result<(), Fault> {
        let Some(last) = last_token(&*events) else { return Ok(()) };
        let tokens = [(tenant.as_str().to_owned(), last)].into();
        for names in self.names_up_to(&tokens).await?.values() {
            restore_names(events, names);
        }
        Ok(())
    }

    /// The names of tenants, each up to a token. Those that are not known are read at once.
    pub async fn names_up_to(
        &self,
        tokens: &BTreeMap<String, AttributeId>,
    ) -> Result<HashMap<String, Arc<KnownNames>>, Fault> {
        let (mut all, mut unknown) = (HashMap::new(), Vec::new());
        for (tenant, last) in tokens {
            let known = self.names.known(tenant);
            // Later tokens were added by other servers, or for a later tenant of this name.
            if *last >= known.next() {
                unknown.push(tenant.as_str());
            }
            all.insert(tenant.clone(), known);
        }
        for (tenant, names) in self.read_names(&unknown).await?.0 {
            all.insert(tenant, names?);
        }
        Ok(all)
    }

    /// The names of tenants, and the number of finds. A damaged document fails its tenant alone.
    pub async fn read_names(&self, tenants: &[&str]) -> Result<(ReadNames, u32), Fault> {
        let mut pages: HashMap<&str, Result<Vec<Page>, Fault>> =
            tenants.iter().map(|tenant| (*tenant, Ok(Vec::new()))).collect();
        let mut reads = 0;
        for some in tenants.chunks(TENANTS_PER_FIND) {
            for document in self.page_documents(some).await? {
                let Some(own) = pages.get_mut(tenant_of_page(key_of(&document)?)) else { continue };
                match (own.as_mut(), Page::read(&document)) {
                    (Ok(pages), Ok(page)) => pages.push(page),
                    (Ok(_), Err(fault)) => *own = Err(fault),
                    (Err(_), _) => {}
                }
            }
            reads += 1;
        }
        let known = |(tenant, pages): (&str, Result<Vec<Page>, Fault>)| {
            let names = pages.map(|pages| Arc::new(known_names(&pages)));
            names.iter().for_each(|names| self.names.learn(tenant, names.clone()));
            (tenant.to_owned(), names)
        };
        Ok((pages.into_iter().map(known).collect(), reads))
    }

    /// All names of a tenant's attributes.
    pub async fn all_names(&self, tenant: &str) -> Result<Arc<KnownNames>, Fault> {
        let all = Arc::new(known_names(&self.pages(tenant).await?));
        self.names.learn(tenant, all.clone());
        Ok(all)
    }

    /// The token of a name, if the tenant has it. Known names are used for a short time only: other
    /// servers may have deleted and recreated the tenant.
    pub async fn token(&self, tenant: &str, name: &str) -> Result<Option<AttributeId>, Fault> {
        let known = self.names.recent(tenant).and_then(|names| names.id(name));
        match known {
            Some(token) => Ok(Some(token)),
            None => Ok(self.all_names(tenant).await?.id(name)),
        }
    }

    /// The documents with the names of a tenant, in the order of their tokens.
    async fn pages(&self, tenant: &str) -> Result<Vec<Page>, Fault> {
        self.page_documents(&[tenant]).await?.iter().map(Page::read).collect()
    }

    /// The documents with the names of tenants, of each in the order of its tokens.
    async fn page_documents(&self, tenants: &[&str]) -> Result<Vec<RawDocumentBuf>, Fault> {
        // A comma comes right before the hyphen, which names may have.
        let of = |tenant: &&str| {
            let [first, end] = [',', '-'].map(|mark| format!("{tenant}{mark}"));
            doc! { ID: { "$gte": first, "$lt": end } }
        };
        let mut ranges: Vec<_> = tenants.iter().map(of).collect();
        let own = match ranges.len() {
            0 => return Ok(Vec::new()),
            1 => ranges.remove(0),
            _ => doc! { "$or": ranges },
        };
        let collection: Collection<RawDocumentBuf> = self.collection(NAMES);
        let options = FindOptions::builder()
            .sort(doc! { ID: 1 })
            .max_time(self.timeout)
            .read_concern(ReadConcern::majority())
            .selection_criteria(SelectionCriteria::ReadPreference(ReadPreference::Primary));
        self.find_documents(&collection, own, options.build()).await
    }

    /// The writes that delete the names of a tenant: the ids of documents to delete, and the
    /// document that replaces the last one.
    pub async fn names_to_delete(
        &self,
        tenant: &str,
    ) -> Result<Option<(Vec<Bson>, RawDocumentBuf)>, Fault> {
        let mut pages = self.pages(tenant).await?;
        let Some(last) = pages.pop() else { return Ok(None) };
        let ids = pages.into_iter().map(|page| Bson::String(page.id)).collect();
        Ok(Some((ids, raw(&last.tombstone())?)))
    }
}

//! Finds users by a text. The users of all its readings are one list, in pages.

use std::collections::{BTreeSet, HashSet};

use locality_uuid::LocalityId;
use prost::Message;

use super::reading::{Reading, Readings, Search, Way, candidates, similar_names};
use crate::encoded::encoded_user::EncodedUser;
use crate::error::{Error, Invalid};
use crate::model::claim::Claim;
use crate::model::policies::Policies;
use crate::search::{Filter, query_hash};
use crate::service::Directory;
use crate::service::context::RequestContext;
use crate::service::lookup::read::{ResolveOptions, UserById};
use crate::service::search::matching_users::{Part, PartRequest};
use crate::service::search::page_size_within;
use crate::stores::{ANSWER_BYTES, Consistency, PageLimit, View};
use crate::tokens::sealed::{SealedToken, TokenPayload};
use polynym_identifier::{IdentityKey, RawIdentifier, Rules, is_region};

/// The maximum size of a text.
const MAX_TEXT_BYTES: usize = 4_096;
/// The default size of a page.
const DEFAULT_PAGE: usize = 10;
/// The maximum size of a page.
const MAX_PAGE: usize = 50;
/// The maximum number of users that one search reads for a page.
const READ_LIMIT: usize = 1_000;
const MAX_SUGGESTIONS: usize = 8;

/// A text to find users by.
#[derive(Clone, Copy, Debug)]
pub struct FindRequest<'r> {
    /// The text, as typed or pasted.
    pub text: &'r str,
    /// The region that is tried first for phone numbers in national form, before those of the
    /// tenant; empty for none.
    pub region: &'r str,
    /// Users in the page; 0 for the default.
    pub page_size: i32,
    /// The token of the page; empty for the first.
    pub page_token: &'r str,
    /// The part of users that the caller needs. The answer may contain more.
    pub view: View,
    /// Whether the caller may only look up identifiers.
    pub identifiers_only: bool,
}

/// A user, with the reasons why it is found.
#[derive(Clone, Debug)]
pub struct FoundUser {
    /// The user.
    pub user: EncodedUser,
    /// The readings that find it, the likeliest first.
    pub reasons: Vec<Reading>,
    /// The user that was found, if it was merged into this one.
    pub merged_from: Option<LocalityId>,
}

/// A page of the users that a text finds.
#[derive(Clone, Debug, Default)]
pub struct FindPage {
    /// The users, the likeliest first.
    pub matches: Vec<FoundUser>,
    /// All ways in which the text was read.
    pub tried: Vec<Reading>,
    /// If the text finds nobody as it is: words of names that it may have been meant to have.
    pub suggestions: Vec<String>,
    /// Users whose records cannot be read: whether the text finds them is not known.
    pub unreadable: BTreeSet<LocalityId>,
    /// The token of the next page; empty after the last.
    pub next_page_token: String,
    /// The number of identifiers that nobody owns. They count as misses of the caller.
    pub misses: usize,
}

/// The position after a page.
#[derive(Clone, PartialEq, Message)]
struct Cursor {
    /// The number of shown users whom an identifier or the id identifies.
    #[prost(uint32, tag = "3")]
    named: u32,
    /// The index of the present search.
    #[prost(uint32, tag = "4")]
    searches: u32,
    /// The cursor of the present search.
    #[prost(bytes = "vec", tag = "5")]
    position: Vec<u8>,
}

impl TokenPayload for Cursor {
    const KIND: u64 = 0x706f_6c79_6e79_6d0a;
    const OTHER_QUERY: &'static str =
        "belongs to another text, or policies have changed: begin again without one";
}

impl Directory {
    /// A page of the users that a text finds, each once.
    ///
    /// # Errors
    /// [`Error::Invalid`], [`Error::TenantNotFound`], [`Error::IndexChanging`],
    /// [`Error::Unavailable`].
    pub async fn find_users(
        &self,
        context: &RequestContext<'_>,
        request: FindRequest<'_>,
    ) -> Result<FindPage, Error> {
        let size = check(&request)?;
        let policies = self.policies(&context.tenant).await?;
        let (rules, _) = self.stored_rules(Consistency::Latest).await?;
        let regions = regions(&request, &policies);
        let mut readings = match request.identifiers_only {
            true => Readings::of_identifiers(request.text, &regions, rules),
            false => Readings::new(request.text, &regions, &policies, rules),
        };
        readings.identifiers.truncate(self.limits.batch);
        let (key, now) = (&self.backend.token_key, context.now.time);
        // Tokens count in the readings, which change with policies and rules.
        let tried = readings.tried();
        let query = query_hash(&context.tenant, request.text, &shape(&tried));
        let is_first = request.page_token.is_empty();
        let cursor = SealedToken::open_page(key, request.page_token, query, now)?;

        let finding = Finding { directory: self, context, rules, readings, request };
        let mut page = FindPage::default();
        let limit = PageLimit::new(size, ANSWER_BYTES);
        let next = finding.fill(&mut page, limit, cursor.unwrap_or_default()).await?;
        if is_first {
            page.tried = tried;
        }
        if is_first && next.is_none() && page.matches.is_empty() {
            finding.add_similar(&mut page, limit).await?;
        }
        let seal = |payload: Cursor| SealedToken { query, issued: now, payload }.seal(key);
        page.next_page_token = next.map(seal).unwrap_or_default();
        Ok(page)
    }
}

/// The users of identifiers and ids.
#[derive(Default)]
struct Named {
    users: Vec<FoundUser>,
    /// The identifiers that nobody owns.
    misses: usize,
    /// The reason why a user cannot be read.
    failure: Option<Error>,
}

/// The search for the users of a text.
struct Finding<'f> {
    directory: &'f Directory,
    context: &'f RequestContext<'f>,
    rules: Rules,
    readings: Readings<'f>,
    request: FindRequest<'f>,
}

impl Finding<'_> {
    /// Fills a page from a cursor on. Returns that of the next page, if there may be more users.
    async fn fill(
        &self,
        page: &mut FindPage,
        mut limit: PageLimit,
        cursor: Cursor,
    ) -> Result<Option<Cursor>, Error> {
        let Named { users: named, misses, failure } = self.named_users().await?;
        page.misses = misses;
        let shown = named.iter().map(|found| id(&found.user)).collect::<Result<HashSet<_>, _>>()?;
        let mut next = cursor;
        for found in named.into_iter().skip(next.named as usize) {
            if !limit.take(found.user.as_bytes().len()) {
                return Ok(Some(next));
            }
            next.named += 1;
            page.matches.push(found);
        }

        let searches = &self.readings.searches;
        for (n, search) in searches.iter().enumerate().skip(next.searches as usize) {
            next.searches = n as u32;
            if limit.items() == 0 {
                return Ok(Some(next));
            }
            let earlier = searches[..n].iter().map(|search| &search.filter);
            let filter = search.filter.clone().excluding(earlier);
            let part = match self.read(&filter, &next.position, limit).await {
                // Those who are found already do not wait for a shard that is away.
                Err(Error::Unavailable(_)) if !page.matches.is_empty() => return Ok(Some(next)),
                part => part?,
            };
            limit = part.limit;
            page.unreadable.extend(part.unreadable);
            for user in part.users {
                if !shown.contains(&id(&user)?) {
                    let reasons = self.searches_of(&user)?;
                    page.matches.push(FoundUser { user, reasons, merged_from: None });
                }
            }
            next.position.clear();
            if let Some(position) = part.next {
                next.position = position;
                return Ok(Some(next));
            }
        }
        match failure {
            Some(error) if page.matches.is_empty() => Err(error),
            _ => Ok(None),
        }
    }

    /// The users of identifiers and ids, each once.
    async fn named_users(&self) -> Result<Named, Error> {
        let identifiers = &self.readings.identifiers;
        let raw: Vec<_> = identifiers.iter().map(|(_, raw)| Some(*raw)).collect();
        let options =
            ResolveOptions { show_disabled: true, view: self.view(), ..ResolveOptions::default() };
        let owners = match raw[..] {
            [] => Vec::new(),
            _ => self.directory.batch_resolve(&self.context.tenant, &raw, options).await?.0,
        };
        let (mut named, mut unowned) = (Named::default(), Vec::new());
        for ((reading, raw), owner) in identifiers.iter().zip(owners) {
            match owner {
                Ok(owner) => self.add(&mut named.users, owner.user, reading.clone(), None)?,
                Err(Error::IdentityNotFound) => unowned.push((reading.clone(), *raw)),
                Err(Error::Invalid { .. }) => {}
                Err(error) => named.failure = Some(error),
            }
        }
        named.misses = unowned.len();
        if !self.request.identifiers_only {
            self.add_others(&mut named, unowned).await?;
        }
        Ok(named)
    }

    /// Adds the users for whom identifiers are held, the deleted and the hidden owners of others,
    /// and the user of the id.
    async fn add_others(
        &self,
        named: &mut Named,
        identifiers: Vec<(Reading, RawIdentifier<'_>)>,
    ) -> Result<(), Error> {
        let tenant = &self.context.tenant;
        let (readings, keys): (Vec<_>, Vec<_>) = identifiers
            .into_iter()
            .filter_map(|(reading, raw)| {
                let identifier = self.rules.parse(raw).ok()?;
                Some((reading, IdentityKey::new(tenant.as_str(), &identifier)))
            })
            .unzip();
        let claims = match keys[..] {
            [] => Vec::new(),
            _ => self.directory.backend.reads.claims(&keys).await?,
        };
        let owners = readings.into_iter().zip(claims);
        let owners = owners.filter_map(|(reading, claim)| self.owner(reading, &claim?));
        let (readings, ids): (Vec<_>, Vec<_>) = owners.chain(self.readings.id.clone()).unzip();
        if ids.is_empty() {
            return Ok(());
        }
        let users = self.directory.get_present(self.context, &ids, self.view()).await?;
        for (reading, user) in readings.into_iter().zip(users) {
            match user {
                Ok(Some(UserById { user, merged_from })) => {
                    self.add(&mut named.users, user, reading, merged_from)?;
                }
                Ok(None) => {}
                Err(error) => named.failure = Some(error.into()),
            }
        }
        Ok(())
    }

    /// The user who has a claim, or for whom it is held.
    fn owner(&self, reading: Reading, claim: &Claim) -> Option<(Reading, LocalityId)> {
        let way = match claim.hold {
            Some(until) if self.context.now.is_past(until) => return None,
            Some(_) => Way::Held,
            None => Way::Identifier,
        };
        Some((Reading { way, ..reading }, claim.owner.filter(|_| !claim.guard)?))
    }

    /// Adds a user with all its reasons. If it is there already, adds the reason.
    fn add(
        &self,
        found: &mut Vec<FoundUser>,
        user: EncodedUser,
        reading: Reading,
        merged_from: Option<LocalityId>,
    ) -> Result<(), Error> {
        let wanted = id(&user)?;
        let own = found.iter_mut().find(|own| own.user.has_id(wanted));
        if let Some(own) = own {
            let named = own.reasons.iter().position(|reason| !is_named(reason));
            own.reasons.insert(named.unwrap_or(own.reasons.len()), reading);
            own.merged_from = own.merged_from.or(merged_from);
            return Ok(());
        }
        let reasons = [reading].into_iter().chain(self.searches_of(&user)?).collect();
        found.push(FoundUser { user, reasons, merged_from });
        Ok(())
    }

    /// The searches that find a user.
    fn searches_of(&self, user: &EncodedUser) -> Result<Vec<Reading>, Error> {
        let user = user.decode().map_err(|error| Error::Internal(Box::new(error)))?;
        let finds = |search: &&Search| search.filter.matches(&user);
        let searches = self.readings.searches.iter().filter(finds);
        Ok(searches.map(|search| search.reading.clone()).collect())
    }

    /// Adds users whose names have words that are like those of the text, and these words.
    async fn add_similar(&self, page: &mut FindPage, limit: PageLimit) -> Result<(), Error> {
        let has_words = |search: &Search| search.reading.way == Way::Name;
        let text = self.request.text;
        if !self.readings.searches.iter().any(has_words) {
            return Ok(());
        }
        let candidates = candidates(text);
        if candidates.is_empty() {
            return Ok(());
        }
        let store = &self.directory.backend.search;
        let mut known = store.known_words(&self.context.tenant, &candidates).await?;
        let Some(Search { reading, filter }) = similar_names(text, &known) else { return Ok(()) };
        let users = self.read(&filter, &[], limit).await?.users;
        page.matches = users
            .into_iter()
            .map(|user| FoundUser { user, reasons: vec![reading.clone()], merged_from: None })
            .collect();
        page.tried.push(reading);
        known.truncate(MAX_SUGGESTIONS);
        page.suggestions = known;
        Ok(())
    }

    /// Reads a part of the users that a filter finds.
    async fn read(&self, filter: &Filter, cursor: &[u8], limit: PageLimit) -> Result<Part, Error> {
        let (read_limit, view) = (READ_LIMIT, self.view());
        let request = PartRequest { filter, cursor, limit, read_limit, view };
        self.directory.matching_part(self.context, request).await
    }

    /// The part of users to read: searches for attributes test them.
    fn view(&self) -> View {
        let has_attributes = |search: &Search| search.reading.way == Way::Attribute;
        match self.readings.searches.iter().any(has_attributes) {
            true => View::Full,
            false => self.request.view,
        }
    }
}

/// The readings as a text, for the hash of a query.
fn shape(readings: &[Reading]) -> String {
    let shape = |Reading { way, value, region, attribute }: &Reading| {
        format!("{way:?}\0{value}\0{region}\0{attribute}\0")
    };
    readings.iter().map(shape).collect()
}

/// Whether a reading names one user.
const fn is_named(reading: &Reading) -> bool {
    matches!(reading.way, Way::Identifier | Way::Held | Way::UserId)
}

fn id(user: &EncodedUser) -> Result<LocalityId, Error> {
    user.id().map_err(|error| Error::Internal(Box::new(error)))
}

/// The regions of numbers in national form, the likeliest first.
fn regions<'r>(request: &FindRequest<'r>, policies: &'r Policies) -> Vec<&'r str> {
    let first = Some(request.region).filter(|region| !region.is_empty());
    let others = policies.phone_regions.iter().map(String::as_str);
    first.into_iter().chain(others.filter(|region| Some(*region) != first)).collect()
}

/// Checks a request. Returns the size of the page.
fn check(request: &FindRequest<'_>) -> Result<usize, Error> {
    let invalid = |field: &str, rule: &str| Err(Error::invalid(Invalid::Field, field, rule));
    if request.text.trim().is_empty() {
        return invalid("text", "is empty: give a name, an identifier or a part of one");
    }
    if request.text.len() > MAX_TEXT_BYTES {
        return invalid("text", "has more than 4,096 bytes");
    }
    if !request.region.is_empty() && !is_region(request.region) {
        return invalid("region", "must be the code of a country by ISO 3166 in capitals, as US");
    }
    page_size_within(request.page_size, DEFAULT_PAGE, MAX_PAGE)
}

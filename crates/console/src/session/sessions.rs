//! The open sessions, bounded: a new one ends the one that was unused for the longest time, of the
//! same caller if that has its share, else of the caller with the most.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use polynym_access::{Access, ActiveCount, Caller, PersonToken, Token};
use polynym_client::{Builder, Client, ConnectError};
use polynym_oidc::EndSession;
use polynym_transport::Connector;
use uuid::Uuid;

use super::duplicate_results::{Finds, LastSearch};
use super::messages::Messages;
use super::queries::Queries;
use super::seen::Seen;
use crate::context;
use crate::imports::{Space, Stop, Uploads};

/// The maximum number of sessions.
const MAX_SESSIONS: usize = 1_024;
/// The maximum number of sessions of one caller, and of all without credentials together.
const MAX_CALLER_SESSIONS: usize = MAX_SESSIONS / 2;
/// The age at which a session ends.
const MAX_AGE: Duration = Duration::from_secs(8 * 60 * 60);
/// The time of a call of a page.
const CALL_TIMEOUT: Duration = Duration::from_secs(8);

/// The id of a session: 128 random bits in base64url.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionId(String);

impl SessionId {
    /// A new id.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// The id as in a cookie.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a session of a person has beyond that of a token.
pub struct PersonSession {
    /// The token of the sign-in, which counts as long as the session.
    pub token: PersonToken,
    /// How to sign out at the provider, if one can.
    pub end: Option<EndSession>,
}

/// When and from where somebody signed in.
pub struct Origin {
    /// The number of sessions before it.
    pub number: u64,
    /// The number that names the session to others: its id is a secret.
    pub public_id: Uuid,
    /// When somebody signed in.
    pub time: SystemTime,
    /// The address of the browser, or of a proxy in front of it, if it is known.
    pub address: Option<SocketAddr>,
}

/// A session.
pub struct Session {
    id: SessionId,
    /// The name of the caller who signed in.
    caller: String,
    /// The header with the token; none without credentials.
    authorization: Option<HeaderValue>,
    /// How the person signed in, if the caller is one.
    person: Option<PersonSession>,
    client: Client,
    began: Instant,
    /// When and from where somebody signed in, for others.
    pub origin: Origin,
    /// The seconds after its beginning at which it was last used.
    last_used: AtomicU64,
    closed: Stop,
    /// Its requests in flight.
    pub requests: Arc<ActiveCount>,
    /// Its open streams of events.
    pub streams: Arc<ActiveCount>,
    /// Its searches.
    pub queries: Queries,
    /// The users at whom it looked last.
    pub seen: Seen,
    /// What was done, for the pages that say so.
    pub messages: Arc<Messages>,
    /// Its files.
    pub uploads: Arc<Uploads>,
    /// Its last search for duplicates.
    pub search: LastSearch,
}

impl Session {
    /// The id.
    pub const fn id(&self) -> &SessionId {
        &self.id
    }

    /// The name of the caller who signed in.
    pub fn caller_name(&self) -> &str {
        &self.caller
    }

    /// How the person signed in, if the caller is one.
    pub const fn person(&self) -> Option<&PersonSession> {
        self.person.as_ref()
    }

    /// A client of the API with the rights of the session.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// The caller, if the token has been valid all the time.
    pub fn caller(&self, access: &Access) -> Option<Arc<Caller>> {
        let mut headers = HeaderMap::new();
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        access.caller_since(&headers, self.began)
    }

    /// Whether somebody signed in, by a token or as a person.
    pub const fn has_credentials(&self) -> bool {
        self.authorization.is_some()
    }

    /// The id of its token; none without credentials.
    pub fn token_id(&self) -> Option<&str> {
        let bearer = self.authorization.as_ref()?.to_str().ok()?;
        Token::parse(bearer.strip_prefix("Bearer ")?).map(Token::id)
    }

    /// When it was last used.
    pub fn last_used(&self) -> SystemTime {
        self.origin.time + Duration::from_secs(self.last_used.load(Ordering::Relaxed))
    }

    /// Waits until the session is closed. A session that is too old may not be closed yet.
    pub async fn closed(&self) {
        self.closed.wait().await;
    }

    /// Whether it is too old.
    fn is_old(&self) -> bool {
        self.began.elapsed() > MAX_AGE
    }

    /// Whether something goes on in it: a request, a stream of events, or work on a file.
    fn is_working(&self) -> bool {
        self.requests.get() > 0 || self.streams.get() > 0 || self.uploads.is_working()
    }

    fn use_now(&self) {
        self.last_used.store(self.began.elapsed().as_secs(), Ordering::Relaxed);
    }

    fn unused_since(&self) -> Instant {
        self.began + Duration::from_secs(self.last_used.load(Ordering::Relaxed))
    }
}

/// The open sessions.
pub struct Sessions {
    connector: Connector,
    space: Arc<Space>,
    open: Mutex<HashMap<SessionId, Arc<Session>>>,
    opened: AtomicU64,
    /// What searches for duplicates found.
    pub finds: Finds,
}

impl Sessions {
    /// No sessions. They call the API by `connector`.
    pub fn new(connector: Connector) -> Self {
        Self {
            connector,
            space: Arc::default(),
            open: Mutex::default(),
            opened: AtomicU64::default(),
            finds: Finds::default(),
        }
    }

    /// The session with this id, unless it has ended.
    pub fn get(&self, id: &str) -> Option<Arc<Session>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let id = SessionId(id.to_owned());
        let session = open.get(&id)?.clone();
        if session.is_old() {
            close(&mut open, &id);
            return None;
        }
        session.use_now();
        Some(session)
    }

    /// Whether a session is open. Does not count as use.
    pub fn is_open(&self, session: &Session) -> bool {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.contains_key(&session.id) && !session.is_old()
    }

    /// Opens a session of a caller with this token, or none.
    ///
    /// # Errors
    /// The token has characters that no token has, or the system has no random bytes.
    pub fn open(
        &self,
        caller: &Caller,
        token: Option<&str>,
        address: Option<SocketAddr>,
    ) -> Result<Arc<Session>, OpenError> {
        self.add(caller, token, None, address)
    }

    /// Opens a session of a person.
    ///
    /// # Errors
    /// As for that of a token.
    pub fn open_of_person(
        &self,
        caller: &Caller,
        person: PersonSession,
        address: Option<SocketAddr>,
    ) -> Result<Arc<Session>, OpenError> {
        let token = person.token.secret().to_owned();
        self.add(caller, Some(&token), Some(person), address)
    }

    fn add(
        &self,
        caller: &Caller,
        token: Option<&str>,
        person: Option<PersonSession>,
        address: Option<SocketAddr>,
    ) -> Result<Arc<Session>, OpenError> {
        let authorization = token.map(|token| HeaderValue::try_from(format!("Bearer {token}")));
        let session = Arc::new(Session {
            id: SessionId::random().map_err(|_| OpenError)?,
            caller: caller.name.clone(),
            authorization: authorization.transpose().map_err(|_| OpenError)?,
            person,
            client: self.client(token, address).map_err(|_| OpenError)?,
            began: Instant::now(),
            origin: Origin {
                number: self.opened.fetch_add(1, Ordering::Relaxed),
                public_id: Uuid::new_v4(),
                time: SystemTime::now(),
                address,
            },
            closed: Stop::default(),
            last_used: AtomicU64::default(),
            requests: Arc::default(),
            streams: Arc::default(),
            queries: Queries::default(),
            seen: Seen::default(),
            messages: Arc::default(),
            uploads: Uploads::new(&caller.name, self.space.clone()),
            search: LastSearch::default(),
        });
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        make_room(&mut open, &caller.name);
        open.insert(session.id.clone(), session.clone());
        Ok(session)
    }

    /// Ends a session.
    pub fn close(&self, id: &SessionId) {
        close(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner), id);
    }

    /// The open sessions and their callers, from the newest. Does not count as use.
    pub fn list(&self, access: &Access) -> Vec<(Arc<Session>, Arc<Caller>)> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let young = open.values().filter(|session| !session.is_old());
        let mut all: Vec<_> = young.cloned().collect();
        drop(open);
        all.sort_unstable_by_key(|session| Reverse(session.origin.number));
        let with_caller = |session: Arc<Session>| {
            let caller = session.caller(access)?;
            Some((session, caller))
        };
        all.into_iter().filter_map(with_caller).collect()
    }

    /// Ends the session that others know by this id. Returns it; none if it has ended before.
    pub fn close_public(&self, public_id: Uuid) -> Option<Arc<Session>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let found = open.values().find(|session| session.origin.public_id == public_id).cloned()?;
        close(&mut open, found.id());
        Some(found)
    }

    /// Ends the sessions whose tokens are no longer valid.
    pub fn close_invalid(&self, access: &Access) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let invalid = open.extract_if(|_, session| session.caller(access).is_none());
        invalid.for_each(|(_, session)| session.closed.set());
    }

    fn client(
        &self,
        token: Option<&str>,
        address: Option<SocketAddr>,
    ) -> Result<Client, ConnectError> {
        // The name of the server is not used: the connection is within the program.
        let mut builder = Builder::new("http://127.0.0.1")
            .timeout(CALL_TIMEOUT)
            .batching(false)
            .on_call(context::on_call);
        if let Some(token) = token {
            builder = builder.token(token);
        }
        let connector = self.connector.clone();
        builder.connect_with(move || {
            let connector = connector.clone();
            async move { connector.connect(address).await }
        })
    }
}

/// A session cannot be opened.
#[derive(Debug)]
pub struct OpenError;

/// Removes a session, and ends what goes on in it.
fn close(open: &mut HashMap<SessionId, Arc<Session>>, id: &SessionId) {
    if let Some(session) = open.remove(id) {
        session.closed.set();
    }
}

/// The caller with the most sessions, where `caller` has one more.
fn caller_with_most<'o>(open: &'o HashMap<SessionId, Arc<Session>>, caller: &'o str) -> &'o str {
    let mut counts = HashMap::from([(caller, 1)]);
    for session in open.values() {
        *counts.entry(session.caller.as_str()).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(name, count): &(&str, usize)| (*count, *name));
    most.map_or(caller, |(name, _)| name)
}

/// Ends sessions until one more fits: of the caller with the most, first those in which nothing
/// goes on.
fn make_room(open: &mut HashMap<SessionId, Arc<Session>>, caller: &str) {
    open.extract_if(|_, session| session.is_old()).for_each(|(_, session)| session.closed.set());
    let is_own = |session: &&Arc<Session>| session.caller == caller;
    let order = |session: &&Arc<Session>| (session.is_working(), session.unused_since());
    let first = if open.values().filter(is_own).count() >= MAX_CALLER_SESSIONS {
        open.values().filter(is_own).min_by_key(order)
    } else if open.len() >= MAX_SESSIONS {
        let most = caller_with_most(open, caller);
        open.values().filter(|session| session.caller == most).min_by_key(order)
    } else {
        None
    };
    if let Some(id) = first.map(|session| session.id.clone()) {
        close(open, &id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use polynym_transport::in_memory;

    fn named(name: &str) -> Caller {
        Caller { name: name.to_owned(), ..Caller::anonymous() }
    }

    #[tokio::test]
    async fn a_caller_with_many_sessions_ends_its_own() {
        let sessions = Sessions::new(in_memory().0);
        let modest = sessions.open(&named("modest"), None, None).unwrap();
        let first = sessions.open(&named("greedy"), None, None).unwrap();
        let busy = sessions.open(&named("greedy"), None, None).unwrap();
        assert!(busy.requests.try_add(1));
        for _ in 0..2 * MAX_SESSIONS {
            sessions.open(&named("greedy"), None, None).unwrap();
        }
        assert!(sessions.get(modest.id().as_str()).is_some());
        assert!(sessions.get(busy.id().as_str()).is_some());
        assert!(sessions.get(first.id().as_str()).is_none());
        first.closed().await;
        let count = sessions.open.lock().unwrap().len();
        assert_eq!(count, MAX_CALLER_SESSIONS + 1);
        sessions.close(modest.id());
        assert!(sessions.get(modest.id().as_str()).is_none());
        modest.closed().await;
    }

    #[tokio::test]
    async fn two_callers_with_many_sessions_end_their_own() {
        let sessions = Sessions::new(in_memory().0);
        let modest: Vec<_> = (0..3)
            .map(|n| sessions.open(&named(&format!("modest {n}")), None, None).unwrap())
            .collect();
        for _ in 0..MAX_SESSIONS {
            for greedy in ["ana", "ben"] {
                sessions.open(&named(greedy), None, None).unwrap();
            }
        }
        let late = sessions.open(&named("late"), None, None).unwrap();
        for own in modest.iter().chain([&late]) {
            assert!(sessions.get(own.id().as_str()).is_some(), "{}", own.caller_name());
        }
        let count = sessions.open.lock().unwrap().len();
        assert_eq!(count, MAX_SESSIONS);
    }
}

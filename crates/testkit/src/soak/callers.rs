//! Callers, each the only one who changes its users: it knows what every look-up must find.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use polynym_client::{Client, Error, Kind, email, v1};
use tokio::task::JoinSet;
use tokio::time::sleep;
use uuid::Uuid;

use super::plan::Plan;
use super::tally::{Tally, is_transient};

/// The time for which a change is repeated.
const LIMIT: Duration = Duration::from_secs(120);
/// The most names of a user.
const NAMES: usize = 4;
/// The pause between two calls of a caller.
const PAUSE: Duration = Duration::from_millis(2);

/// Running callers.
pub struct Callers {
    tasks: JoinSet<Vec<String>>,
    stop: Arc<AtomicBool>,
}

impl Callers {
    /// Creates the users of all callers, and starts to call.
    pub async fn start(client: &Client, tally: &Arc<Tally>, plan: &Plan) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut creating = JoinSet::new();
        for number in 0..plan.callers {
            let caller = Caller {
                client: client.clone(),
                tally: tally.clone(),
                number,
                users: Vec::new(),
                merged: None,
            };
            creating.spawn(caller.with_users(plan.users));
        }
        let mut tasks = JoinSet::new();
        for caller in creating.join_all().await {
            tasks.spawn(caller.call_until(stop.clone()));
        }
        Self { tasks, stop }
    }

    /// Lets every caller finish its call, and ends. Returns the ids of all users.
    pub async fn stop(self) -> Vec<String> {
        self.stop.store(true, Relaxed);
        self.tasks.join_all().await.concat()
    }
}

struct Caller {
    client: Client,
    tally: Arc<Tally>,
    number: usize,
    users: Vec<Person>,
    /// The first user is merged with the second.
    merged: Option<(usize, usize)>,
}

struct Person {
    id: String,
    names: Vec<String>,
    /// The number of the next name.
    next: usize,
}

impl Person {
    /// Returns a name that the user never had.
    fn new_name(&mut self, caller: usize, user: usize) -> String {
        self.next += 1;
        format!("c{caller}.u{user}.n{}@example.com", self.next)
    }
}

impl Caller {
    async fn with_users(mut self, count: usize) -> Self {
        for user in 0..count {
            let mut person = Person { id: String::new(), names: Vec::new(), next: 0 };
            person.names = (0..2).map(|_| person.new_name(self.number, user)).collect();
            let new = v1::User {
                display_name: format!("Caller {} User {user}", self.number),
                identities: person.names.iter().map(|name| identity(name)).collect(),
                ..Default::default()
            };
            let create = |client: Client, request_id| {
                let user = Some(new.clone());
                let request = v1::CreateUserRequest { user, request_id, ..Default::default() };
                async move { client.registry().create_user(request).await }
            };
            let created = self.change("create", create).await.expect("a user is created");
            person.id = created.user.unwrap_or_default().user_id;
            self.users.push(person);
        }
        self
    }

    /// Calls, and returns the ids of its users.
    async fn call_until(mut self, stop: Arc<AtomicBool>) -> Vec<String> {
        while !stop.load(Relaxed) {
            let user = fastrand::usize(..self.users.len());
            let is_sound = match fastrand::u32(..100) {
                0..55 => self.look_up(user).await,
                55..60 => self.look_up_nobody(user).await,
                60..65 => self.look_up_many().await,
                65..70 => self.get(user).await,
                70..72 => self.search(user).await,
                72..84 => self.link_or_unlink(user).await,
                84..90 => self.replace(user).await,
                90..95 => self.rename(user).await,
                _ => self.merge_or_unmerge(user).await,
            };
            // The records that it keeps of its users may be wrong from here on.
            if is_sound.is_none() {
                break;
            }
            sleep(PAUSE).await;
        }
        self.users.into_iter().map(|user| user.id).collect()
    }

    /// The id by which look-ups find a user.
    fn owner(&self, user: usize) -> &str {
        let user = match self.merged {
            Some((primary, secondary)) if secondary == user => primary,
            _ => user,
        };
        &self.users[user].id
    }

    /// Whether the user is part of a merge: it does not change until that is undone.
    fn is_merged(&self, user: usize) -> bool {
        self.merged.is_some_and(|(primary, secondary)| [primary, secondary].contains(&user))
    }

    /// Compares an answer with what this caller knows.
    fn expect(&self, what: &str, found: Option<v1::User>, id: &str) {
        let found = found.unwrap_or_default().user_id;
        if found != id {
            self.tally.wrong(format!("{what} of {id} finds {found}"));
        }
    }

    async fn look_up(&self, user: usize) -> Option<()> {
        let name = fastrand::choice(&self.users[user].names)?;
        let start = Instant::now();
        match self.client.resolve(email(name)).await {
            Ok(found) => {
                self.tally.looked_up(Some(start.elapsed()));
                self.expect("a look-up", found.user, self.owner(user));
            }
            Err(error) => self.tally.failed("a look-up", &error),
        }
        Some(())
    }

    async fn look_up_nobody(&self, user: usize) -> Option<()> {
        let name = format!("nobody.{}", self.users[user].names.first()?);
        match self.client.resolve(email(name)).await {
            Ok(found) => self.tally.wrong(format!("nobody's name finds {:?}", found.user)),
            Err(error) if error.kind() == Kind::NotFound => self.tally.looked_up(None),
            Err(error) => self.tally.failed("a look-up of nobody", &error),
        }
        Some(())
    }

    async fn look_up_many(&self) -> Option<()> {
        let users: Vec<_> = (0..20).map(|_| fastrand::usize(..self.users.len())).collect();
        let names = users.iter().filter_map(|user| self.users[*user].names.first()).map(email);
        let found = self.client.resolve_many(names.collect::<Vec<_>>()).await;
        for (user, found) in users.iter().zip(found) {
            match found {
                Ok(found) => {
                    self.tally.looked_up(None);
                    self.expect("a batch", found.user, self.owner(*user));
                }
                Err(error) => self.tally.failed("a batch", &error),
            }
        }
        Some(())
    }

    async fn get(&self, user: usize) -> Option<()> {
        let user_id = self.users[user].id.clone();
        let request = v1::GetUserRequest { user_id, ..Default::default() };
        match self.client.directory().get_user(request).await {
            Ok(answer) => {
                self.tally.looked_up(None);
                self.expect("a look-up by id", answer.user, self.owner(user));
            }
            Err(error) => self.tally.failed("a look-up by id", &error),
        }
        Some(())
    }

    async fn search(&self, user: usize) -> Option<()> {
        let filter = format!("display_name = \"Caller {} User {user}\"", self.number);
        let request = v1::SearchUsersRequest { filter, ..Default::default() };
        match self.client.search(request).try_collect::<Vec<_>>().await {
            Ok(found) if self.is_merged(user) || !found.is_empty() => self.tally.looked_up(None),
            Ok(_) => self.tally.wrong(format!("a search misses {}", self.users[user].id)),
            Err(error) => self.tally.failed("a search", &error),
        }
        Some(())
    }

    async fn link_or_unlink(&mut self, user: usize) -> Option<()> {
        if self.is_merged(user) {
            return Some(());
        }
        let user_id = self.users[user].id.clone();
        if self.users[user].names.len() < NAMES {
            let name = self.users[user].new_name(self.number, user);
            let request = v1::LinkIdentityRequest {
                user_id,
                identifier: Some(email(&name)),
                ..Default::default()
            };
            let link = |client: Client, request_id| {
                let request = v1::LinkIdentityRequest { request_id, ..request.clone() };
                async move { client.registry().link_identity(request).await }
            };
            self.change("a link", link).await?;
            self.users[user].names.push(name);
        } else {
            let name = self.users[user].names.remove(fastrand::usize(..NAMES));
            let request = v1::UnlinkIdentityRequest {
                user_id,
                identifier: Some(email(&name)),
                ..Default::default()
            };
            let unlink = |client: Client, request_id| {
                let request = v1::UnlinkIdentityRequest { request_id, ..request.clone() };
                async move { client.registry().unlink_identity(request).await }
            };
            self.change("an unlink", unlink).await?;
        }
        Some(())
    }

    async fn replace(&mut self, user: usize) -> Option<()> {
        if self.is_merged(user) {
            return Some(());
        }
        let (new, at) = (self.users[user].new_name(self.number, user), 0);
        let request = v1::ReplaceIdentityRequest {
            user_id: self.users[user].id.clone(),
            old_identifier: Some(email(&self.users[user].names[at])),
            new_identifier: Some(email(&new)),
            ..Default::default()
        };
        let replace = |client: Client, request_id| {
            let request = v1::ReplaceIdentityRequest { request_id, ..request.clone() };
            async move { client.registry().replace_identity(request).await }
        };
        self.change("a replacement", replace).await?;
        self.users[user].names[at] = new;
        Some(())
    }

    /// Writes the display name that the user has.
    async fn rename(&mut self, user: usize) -> Option<()> {
        if self.is_merged(user) {
            return Some(());
        }
        let user = v1::User {
            user_id: self.users[user].id.clone(),
            display_name: format!("Caller {} User {user}", self.number),
            attributes: [(
                "round".to_owned(),
                crate::calls::text(&self.users[user].next.to_string()),
            )]
            .into(),
            ..Default::default()
        };
        let paths = ["display_name", "attributes.round"].map(str::to_owned).to_vec();
        let rename = |client: Client, request_id| {
            let request = v1::UpdateUserRequest {
                user: Some(user.clone()),
                update_mask: Some(prost_types::FieldMask { paths: paths.clone() }),
                request_id,
                ..Default::default()
            };
            async move { client.registry().update_user(request).await }
        };
        self.change("an update", rename).await.map(drop)
    }

    async fn merge_or_unmerge(&mut self, user: usize) -> Option<()> {
        let other = (user + 1) % self.users.len();
        let (primary, secondary) = self.merged.unwrap_or((user, other));
        let id = |user: usize| self.users[user].id.clone();
        let (primary_user_id, secondary_user_id) = (id(primary), id(secondary));
        if self.merged.is_some() {
            let unmerge = |client: Client, request_id| {
                let request = v1::UnmergeUsersRequest {
                    primary_user_id: primary_user_id.clone(),
                    secondary_user_id: secondary_user_id.clone(),
                    request_id,
                    ..Default::default()
                };
                async move { client.registry().unmerge_users(request).await }
            };
            self.change("an unmerge", unmerge).await?;
            self.merged = None;
        } else {
            let merge = |client: Client, request_id| {
                let request = v1::MergeUsersRequest {
                    primary_user_id: primary_user_id.clone(),
                    secondary_user_id: secondary_user_id.clone(),
                    request_id,
                    ..Default::default()
                };
                async move { client.registry().merge_users(request).await }
            };
            self.change("a merge", merge).await?;
            self.merged = Some((primary, secondary));
        }
        Some(())
    }

    /// Makes a change, and repeats it with its request id until it is answered: it happens once.
    async fn change<T, F: Future<Output = Result<T, Error>>>(
        &self,
        what: &str,
        call: impl Fn(Client, String) -> F,
    ) -> Option<T> {
        let (start, request_id) = (Instant::now(), Uuid::new_v4().to_string());
        loop {
            let error = match call(self.client.clone(), request_id.clone()).await {
                Ok(answer) => {
                    self.tally.changed();
                    return Some(answer);
                }
                Err(error) => error,
            };
            self.tally.failed(what, &error);
            if !is_transient(&error) {
                return None;
            }
            if start.elapsed() > LIMIT {
                self.tally.wrong(format!("{what} has no answer: {error}"));
                return None;
            }
            sleep(Duration::from_millis(100)).await;
        }
    }
}

fn identity(name: &str) -> v1::Identity {
    v1::Identity { identifier: Some(email(name)), ..Default::default() }
}

//! Lists that have pages, as streams of their items.

use std::collections::VecDeque;

use futures_util::stream::{self, BoxStream, StreamExt};

use crate::client::Client;
use crate::error::Error;
use crate::v1::{Event, ListHistoryRequest, SearchUsersRequest, User};

/// The items of all pages. It ends after an error.
pub type Items<T> = BoxStream<'static, Result<T, Error>>;

impl Client {
    /// All users that match a search.
    pub fn search(&self, request: SearchUsersRequest) -> Items<User> {
        self.directory().search_users_all(request)
    }

    /// All events of a user, the newest first.
    pub fn history(&self, request: ListHistoryRequest) -> Items<Event> {
        self.directory().list_history_all(request)
    }
}

/// The items of all pages, beginning with that of a token. The next page is fetched once all items
/// of one were taken.
pub fn items<T, F>(token: String, fetch: impl Fn(String) -> F + Send + 'static) -> Items<T>
where
    T: Send + 'static,
    F: Future<Output = Result<(Vec<T>, String), Error>> + Send,
{
    let start = (VecDeque::new(), Some(token), fetch);
    stream::try_unfold(start, |(mut page, mut next, fetch)| async move {
        loop {
            if let Some(item) = page.pop_front() {
                return Ok(Some((item, (page, next, fetch))));
            }
            let Some(token) = next else { return Ok(None) };
            let (items, token) = fetch(token).await?;
            page = items.into();
            next = Some(token).filter(|token| !token.is_empty());
        }
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt;

    use super::*;

    #[tokio::test]
    async fn empty_pages_do_not_end_a_list() {
        let fetch = |token: String| async move {
            Ok(match token.as_str() {
                "" => (vec![1, 2], "b".to_owned()),
                "b" => (vec![], "c".to_owned()),
                _ => (vec![3], String::new()),
            })
        };
        let all: Vec<i32> = items(String::new(), fetch).try_collect().await.unwrap();
        assert_eq!(all, [1, 2, 3]);
    }
}

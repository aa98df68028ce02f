//! Pages of searches through the directory service.

use std::collections::BTreeSet;

use locality_uuid::{Generator, Mode};
use polynym_directory::{
    Directory, Limits, Record, SearchRequest, Tenant, UserChange, UserCount, search::parse_order_by,
};

use super::searching::{all_users, filter};
use crate::fixture::Fixture;
use crate::fixture::assertions::{ensure, equal};
use crate::fixture::factory::Failure;
use crate::fixture::random::Random;

pub async fn pages_list_each_match_once(f: Fixture) -> Result<(), Failure> {
    let mut random = Random(0x1234_5678_9abc_def0);
    for n in 0..80 {
        let user = f.change_new(random.user()).await?;
        if n % 9 == 0 {
            f.change(&user, UserChange::Disable).await?;
        }
    }
    let all = all_users(&f, &Tenant::DEFAULT).await?;
    let ids = Generator::builder(Mode::Variable).random_origin().build();
    let directory = Directory::new(f.store.clone(), ids, Limits::default());
    let context = directory.context(Tenant::DEFAULT, "", "SearchUsers", "");
    for _ in 0..25 {
        let (text, page_size) = (random.filter(), 1 + random.below(20) as i32);
        let filter = filter(&text)?;
        let order_by = random.one_of(&["", "", "display_name", "attributes.a"]);
        let order = parse_order_by(order_by)?.map(|field| filter.ordered_paths(&field).remove(0));
        let is_listed = |record: &&Record| {
            let has_position =
                order.as_ref().is_none_or(|lead| lead.position(&record.user).is_some());
            has_position && filter.matches(&record.user)
        };
        let wanted: BTreeSet<_> = all.iter().filter(is_listed).map(Record::id).collect();

        let (mut seen, mut token) = (Vec::new(), String::new());
        loop {
            let page_token = token.as_str();
            let request = SearchRequest {
                filter: &text,
                order_by,
                page_size,
                page_token,
                count: true,
                ..Default::default()
            };
            let page = directory.search(&context, request).await?;
            equal(&page.count, &Some(UserCount { users: wanted.len(), has_more: false }), &text)?;
            ensure(page.users.len() <= page_size as usize, format!("{text}: a page is too large"))?;
            for user in &page.users {
                seen.push(user.decode()?.id);
            }
            if page.next_page_token.is_empty() {
                break;
            }
            token = page.next_page_token;
        }
        equal(&seen.len(), &wanted.len(), &format!("users found by {text}, order {order_by}"))?;
        equal(&seen.into_iter().collect(), &wanted, &text)?;
    }
    Ok(())
}

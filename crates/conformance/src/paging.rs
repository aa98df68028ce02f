//! Pages of searches by a directory over the store.

use std::collections::BTreeSet;

use locality_uuid::{Generator, Mode};
use polynym_directory::search::parse_order_by;
use polynym_directory::{Directory, Limits, Record, SearchRequest, Tenant, UserChange};

use super::Failure;
use super::assertions::{ensure, equal};
use super::fixture::Fixture;
use super::made_up::Numbers;
use super::searching::{everybody, filter};

pub async fn pages_of_a_directory_have_who_matches_once(f: Fixture) -> Result<(), Failure> {
    let mut numbers = Numbers(0x1234_5678_9abc_def0);
    for n in 0..80 {
        let user = f.change_new(numbers.user()).await?;
        if n % 9 == 0 {
            f.change(&user, UserChange::Disable).await?;
        }
    }
    let all = everybody(&f, &Tenant::DEFAULT).await?;
    let ids = Generator::builder(Mode::Variable).random_origin().build();
    let directory = Directory::new(f.store.clone(), ids, Limits::default());
    let context = directory.context(Tenant::DEFAULT, "", "SearchUsers", "");
    for _ in 0..25 {
        let (text, page_size) = (numbers.filter(), 1 + numbers.below(20) as i32);
        let filter = filter(&text)?;
        let order_by = numbers.one_of(&["", "", "display_name", "attributes.a"]);
        let order = parse_order_by(order_by)?.map(|field| filter.ordered_leads(&field).remove(0));
        let is_listed = |record: &&Record| {
            let has_place = order.as_ref().is_none_or(|lead| lead.position(&record.user).is_some());
            has_place && filter.matches(&record.user)
        };
        let wanted: BTreeSet<_> = all.iter().filter(is_listed).map(Record::id).collect();

        let (mut met, mut token) = (Vec::new(), String::new());
        loop {
            let page_token = token.as_str();
            let request = SearchRequest {
                filter: &text,
                order_by,
                page_size,
                page_token,
                ..Default::default()
            };
            let page = directory.search(&context, request).await?;
            ensure(page.users.len() <= page_size as usize, format!("{text}: a page is too large"))?;
            for user in &page.users {
                met.push(user.decode()?.id);
            }
            if page.next_page_token.is_empty() {
                break;
            }
            token = page.next_page_token;
        }
        equal(&met.len(), &wanted.len(), &format!("users met by {text}, order {order_by}"))?;
        equal(&met.into_iter().collect(), &wanted, &text)?;
    }
    Ok(())
}

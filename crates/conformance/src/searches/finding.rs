//! Users are found by texts as a naive reference finds them, each once, whatever the pages.

use std::collections::BTreeSet;

use locality_uuid::{Generator, LocalityId, Mode};
use polynym_directory::{Directory, FindRequest, Limits, NewUser, Tenant, User, UserChange, View};

use crate::fixture::assertions::equal;
use crate::fixture::factory::Failure;
use crate::fixture::random::Random;
use crate::fixture::{Fixture, draft};

const USERS: usize = 40;
/// The last four digits of the phone number of the first user. The next user has the next number.
const PHONE_END: usize = 2_300;
const TEXTS: usize = 60;
const FIRST: [&str; 5] = ["Ann", "Anna", "Joe", "Jörg", "Maria"];
const LAST: [&str; 5] = ["Müller", "Mueller", "Muller", "Smith", "Smithson"];

/// A random user, who may share its name with others.
async fn create(f: &Fixture, random: &mut Random, n: usize) -> Result<User, Failure> {
    let (first, last) = (random.one_of(&FIRST), random.one_of(&LAST));
    let start = random.one_of(&["ann", "anna", "joe", "smith"]);
    let phone = format!("phone:+1415555{}", PHONE_END + n);
    let identities = [format!("email:{start}{n}@example.com"), format!("handle:user{n}"), phone];
    let identities = identities.iter().map(|text| draft(text)).collect::<Result<_, _>>()?;
    let display_name = format!("{first} {last}");
    let new = NewUser { display_name, identities, ..NewUser::default() };
    Ok(f.change_new(UserChange::Create(new)).await?)
}

/// A text that somebody may type for one of the users.
fn text(random: &mut Random) -> String {
    let name = [random.one_of(&FIRST), random.one_of(&LAST)];
    let n = random.below(USERS + 3);
    match random.below(7) {
        0 => name.join(" "),
        1 => format!("{} {}", name[1].to_uppercase(), name[0].chars().take(2).collect::<String>()),
        2 => name[random.below(2)].to_lowercase(),
        3 => format!("user{n}"),
        4 => format!("User <ann{n}@example.com>, @user{n}"),
        5 => format!("555-{}", PHONE_END + n),
        _ => random
            .one_of(&["…2305", "ann", "anna1", "smith2", "joe@", "xyzzy xyzzy", "a"])
            .to_owned(),
    }
}

/// Whether a text names the user by one of the ways of the vocabulary above.
fn is_meant(user: &User, text: &str) -> bool {
    let identities = user.identities.iter().map(|identity| identity.identifier.canonical());
    let identities: Vec<_> = identities.collect();
    let listed: Vec<_> = text.split(", ").collect();
    let addressed = |part: &str| {
        let part =
            part.strip_prefix("User <").and_then(|part| part.strip_suffix('>')).unwrap_or(part);
        identities.contains(&part.trim_start_matches('@'))
    };
    if listed.len() > 1 {
        return listed.into_iter().any(addressed);
    }
    let is_start = text.chars().count() >= 3 && identities[0].starts_with(&text.to_lowercase());
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let is_number = !text.contains(char::is_alphabetic) && digits.len() >= 4;
    let is_end =
        is_number && identities.iter().any(|own| own.starts_with('+') && own.ends_with(&digits));
    addressed(text) || is_start || is_end || has_words(&user.display_name, text)
}

/// Whether a name has the words of a text, the last of which may go on. Each umlaut is also its
/// letter, and two.
fn has_words(name: &str, text: &str) -> bool {
    if text.contains('@') {
        return false;
    }
    let folded = |text: &str| text.to_lowercase().replace('ü', "u").replace('ö', "o");
    let own: Vec<_> = name.split(' ').map(folded).collect();
    let apart = text.to_lowercase().replace('ü', "ue").replace('ö', "oe");
    let together = text.to_lowercase().replace("ue", "u").replace("oe", "o");
    let spellings = [text, &apart, &together].map(folded);
    let count = text.split(' ').count();
    let has = |at: usize| {
        let mut typed = spellings.iter().filter_map(|text| text.split(' ').nth(at));
        typed.any(|word| {
            own.iter().any(|own| own == word || (at + 1 == count && own.starts_with(word)))
        })
    };
    (0..count).all(has)
}

async fn found(
    directory: &Directory,
    text: &str,
    page_size: i32,
) -> Result<Vec<LocalityId>, Failure> {
    let context = directory.context(Tenant::DEFAULT, "", "FindUsers", "");
    let (mut all, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = FindRequest {
            text,
            region: "",
            page_size,
            page_token: &page_token,
            view: View::Basic,
            identifiers_only: false,
        };
        let page = directory.find_users(&context, request).await?;
        if page.suggestions.is_empty() {
            for found in &page.matches {
                all.push(found.user.id()?);
            }
        }
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return Ok(all);
        }
    }
}

pub async fn texts_find_the_users_of_the_reference(f: Fixture) -> Result<(), Failure> {
    let ids = Generator::builder(Mode::Variable).random_origin().build();
    let directory = Directory::new(f.store.clone(), ids, Limits::default());
    let mut random = Random(0x5eed_f19d);
    let mut users = Vec::new();
    for n in 0..USERS {
        users.push(create(&f, &mut random, n).await?);
    }
    for _ in 0..TEXTS {
        let text = text(&mut random);
        let found = found(&directory, &text, 1 + random.below(7) as i32).await?;
        let distinct: BTreeSet<_> = found.iter().copied().collect();
        equal(&distinct.len(), &found.len(), &format!("each user once: {text}"))?;
        let meant = users.iter().filter(|user| is_meant(user, &text)).map(|user| user.id);
        equal(&distinct, &meant.collect(), &text)?;
    }
    Ok(())
}

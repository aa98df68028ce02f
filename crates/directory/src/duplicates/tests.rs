//! Duplicates: matches, their reasons and their scores.

use locality_uuid::LocalityId;

use super::compare::compare;
use super::email::{mailbox, without_dots};
use super::evidence::{Evidence, Match, Reason};
use super::frequency::Frequencies;
use super::key_index::KeyIndex;
use super::name::{ends, handle_form, is_near, name_form};
use super::pairs::{DuplicatePair, DuplicatePairs};
use super::profile::{Key, Profile, ProfileReader, is_present};
use crate::clock::Now;
use crate::model::attribute::Value;
use crate::model::record::{Hold, Record};
use crate::model::tenant::Tenant;
use crate::model::unknown::Unknown;
use crate::model::user::{Identity, State, User};
use crate::timestamp::Timestamp;
use polynym_identifier::{Identifier, Kind, RULES_VERSION, RawIdentifier, Rules};

/// A reader without attributes that are evidence.
const READER: ProfileReader =
    ProfileReader { rules: Rules::PRESENT, seed: 7, evidence: Vec::new() };
const NOW: Timestamp = Timestamp::from_millis(1_000);

fn id(n: u8) -> LocalityId {
    LocalityId::from([n; 16])
}

fn identifier(text: &str) -> Identifier {
    Identifier::parse(RawIdentifier::from_text(text).unwrap()).unwrap()
}

fn user(n: u8, name: &str, names: &[&str]) -> User {
    let identity = |text: &&str| Identity {
        identifier: identifier(text),
        display: (*text).to_owned(),
        rules_version: RULES_VERSION,
        link_time: NOW,
        import_time: None,
        verification: None,
        primary: false,
        unknown: Unknown::default(),
    };
    User {
        id: id(n),
        tenant: Tenant::DEFAULT,
        display_name: name.to_owned(),
        identities: names.iter().map(identity).collect(),
        attributes: Default::default(),
        state: State::Active,
        create_time: NOW,
        update_time: NOW,
        unknown: Unknown::default(),
    }
}

fn with(user: User, attributes: &[(&str, Value)]) -> User {
    let attributes = attributes.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    User { attributes: attributes.collect(), ..user }
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

/// The profiles of users, one of whom may have an identifier held.
fn profiles(users: &[User], held: Option<(&User, &str, i64)>) -> (Vec<Profile>, Frequencies) {
    let profile = |user: &User| {
        let mut profile = READER.profile(user);
        if let Some((_, text, until)) = held.filter(|(former, ..)| *former == user) {
            let mut record = Record::new(user.clone());
            record.internals.holds.push(Hold {
                key: user.key(&identifier(text)),
                until: Timestamp::from_millis(until),
                guard: false,
                rules_version: RULES_VERSION,
            });
            profile.add_held(&READER.held(&record, Now::certain(NOW)));
        }
        profile
    };
    let profiles: Vec<_> = users.iter().map(profile).collect();
    let mut frequencies = Frequencies::default();
    for profile in &profiles {
        profile.counted().for_each(|hash| frequencies.add(hash));
    }
    frequencies.sort();
    (profiles, frequencies)
}

/// The reasons and scores of the first two users. Asserts that users with reasons share a key.
fn reasons(users: &[User]) -> Vec<(Reason, u8)> {
    reasons_held(users, None)
}

fn reasons_held(users: &[User], held: Option<(&User, &str, i64)>) -> Vec<(Reason, u8)> {
    let (profiles, frequencies) = profiles(users, held);
    let [a, b, ..] = &profiles[..] else { panic!("two users") };
    let found = compare(a, b, &frequencies);
    assert_eq!(found, compare(b, a, &frequencies), "the order does not matter");
    let keys = READER.keys(b);
    let shares_key = READER.keys(a).iter().any(|key| keys.contains(key));
    assert!(shares_key || found.is_none(), "matching users share a key: {found:?}");
    let evidence = found.map(|found| found.evidence).unwrap_or_default();
    evidence.iter().map(|evidence| (evidence.reason, evidence.score)).collect()
}

#[test]
fn mailboxes_ignore_tags_and_at_gmail_dots() {
    let cases = [
        ("joe.smith@example.com", "joe.smith@example.com", "joesmith@example.com"),
        ("joe.smith+x+y@example.com", "joe.smith@example.com", "joesmith@example.com"),
        ("j.o.e+x.y@gmail.com", "joe@gmail.com", "joe@gmail.com"),
        ("joe@googlemail.com", "joe@gmail.com", "joe@gmail.com"),
        ("j.oe@mail.gmail.com", "j.oe@mail.gmail.com", "joe@mail.gmail.com"),
        ("+joe@example.com", "+joe@example.com", "+joe@example.com"),
    ];
    for (canonical, exact, loose) in cases {
        assert_eq!((&*mailbox(canonical), &*without_dots(exact)), (exact, loose));
    }
}

#[test]
fn names_are_compared_without_case_accents_and_order() {
    for (a, b) in [
        ("José Núñez", "  JOSE   nunez "),
        ("Smith, Joe", "Joe Smith"),
        ("Anne-Marie O'Neill", "anne marie ONeill"),
        ("Ａnna", "anna"),
        ("ΓΙΩΡΓΟΣ ΠΑΠΑΔΟΠΟΥΛΟΣ", "Γιώργος Παπαδόπουλος"),
        ("Jörg Weiß", "JÖRG WEISS"),
        ("Felix Müller", "Felix Mueller"),
        ("Łukasz Søgård", "LUKASZ SOGARD"),
        ("Anne\u{2011}Marie", "Anne-Marie"),
        ("マリー・キュリー", "マリー キュリー"),
        ("Robert “Bob” Smith (jun.)", "robert bob smith jun"),
        ("J. R. Smith", "j r smith"),
        ("J.R. Smith", "JR Smith"),
    ] {
        assert_eq!(name_form(a), name_form(b), "{a} {b}");
    }
    for (a, b) in [("Joe Smith", "Joel Smith"), ("がく", "かく"), ("Joe", "Joe Smith")] {
        assert_ne!(name_form(a), name_form(b), "{a} {b}");
    }
    for nothing in ["", "  ", "J", "--"] {
        assert_eq!(name_form(nothing), None, "{nothing}");
    }
}

#[test]
fn near_handles_differ_little_and_share_an_end() {
    let near = [
        ("joe.smith", "joe_smith"),
        ("joe", "joe2"),
        ("joesmith", "joesmiht"),
        ("joesmith", "oesmith"),
        ("joesmith", "joesmitj"),
        ("jösmithé", "jösmithe"),
    ];
    for (a, b) in near {
        let [a, b] = [a, b].map(handle_form);
        assert!(is_near(&a, &b) && is_near(&b, &a), "{a} {b}");
        assert!(ends(&a)[0] == ends(&b)[0] || ends(&a)[1] == ends(&b)[1], "{a} {b}");
    }
    for (a, b) in [
        ("joe", "jon"),
        ("a1", "a2"),
        ("jwolf555", "jwolf1908"),
        ("joesmith", "joeswift"),
        ("7", "8"),
    ] {
        assert!(!is_near(a, b), "{a} {b}");
    }
}

#[test]
fn addresses_of_one_mailbox_match() {
    let of = |email: &str| user(2, "Joseph", &[&format!("email:{email}")]);
    let joe = |email: &str| user(1, "Joe", &[&format!("email:{email}"), "handle:joe"]);
    let found = reasons(&[joe("joe.smith@gmail.com"), of("joesmith+work@googlemail.com")]);
    assert_eq!(found, [(Reason::SameMailbox, 90)]);
    let found = reasons(&[joe("joe.smith+a@example.com"), of("joe.smith+b@example.com")]);
    assert_eq!(found, [(Reason::SameMailbox, 90)]);
    let found = reasons(&[joe("joe.smith@example.com"), of("joesmith@example.com")]);
    assert_eq!(found, [(Reason::SimilarEmail, 55)]);

    for other in ["joesmith@example.org", "joe.smyth@gmail.com", "joe@gmail.com"] {
        assert_eq!(reasons(&[joe("joe.smith@gmail.com"), of(other)]), [], "{other}");
    }
}

#[test]
fn a_mailbox_that_many_share_counts_less() {
    let trackers = |count: u8| -> Vec<_> {
        (1..=count).map(|n| user(n, "", &[&format!("email:track+{n}@example.com")])).collect()
    };
    assert_eq!(reasons(&trackers(2)), [(Reason::SameMailbox, 90)]);
    assert_eq!(reasons(&trackers(4)), [(Reason::SameMailbox, 72)]);
    assert_eq!(reasons(&trackers(50)), [(Reason::SameMailbox, 12)]);
}

#[test]
fn the_same_name_with_evidence_matches() {
    let reader =
        ProfileReader { evidence: vec!["born".to_owned(), "Straße".to_owned()], ..READER };
    let born =
        |n, name: &str, name_of: &str, value: Value| with(user(n, name, &[]), &[(name_of, value)]);
    let found = |users: &[User]| {
        let profiles: Vec<_> = users.iter().map(|user| reader.profile(user)).collect();
        let mut frequencies = Frequencies::default();
        profiles.iter().flat_map(Profile::counted).for_each(|hash| frequencies.add(hash));
        frequencies.sort();
        let found = compare(&profiles[0], &profiles[1], &frequencies);
        let keys = reader.keys(&profiles[1]);
        assert!(found.is_none() || reader.keys(&profiles[0]).iter().any(|key| keys.contains(key)));
        found.map(|found| (found.score, reader.shared([&users[0], &users[1]], &found.evidence[0])))
    };
    let joe = born(1, "Joe Weiß", "born", text("1980-01-02"));
    let same = |value: &str| [value, value].map(ToOwned::to_owned);
    assert_eq!(
        found(&[joe.clone(), born(2, "JOE WEISS", "born", text("1980-01-02"))]),
        Some((70, same("1980-01-02")))
    );
    let streets = [1, 2].map(|n| {
        let street = ["Hauptstr. 5", "HAUPTSTR 5"][usize::from(n) - 1];
        born(n, "Joe Weiß", "Straße", text(street))
    });
    let values = ["Hauptstr. 5", "HAUPTSTR 5"].map(ToOwned::to_owned);
    assert_eq!(found(&streets), Some((70, values)));
    for other in [
        born(2, "Joe Weiß", "born", text("1980-01-03")),
        born(2, "Joe Weiß", "team", text("1980-01-02")),
        born(2, "Joe Weiß", "born", Value::Bool(true)),
    ] {
        let found = found(&[joe.clone(), other]);
        assert_eq!(found, Some((30, same("Joe Weiß"))), "the name alone");
    }
    assert_eq!(found(&[joe, born(2, "Ann Weiß", "born", text("1980-01-02"))]), None);
    let common: Vec<_> = (1..=4).map(|n| born(n, "Joe", "born", Value::Int(7))).collect();
    assert_eq!(found(&common), Some((35, same("7"))));
}

#[test]
fn shared_values_are_those_that_match() {
    let shared = |a: &User, b: &User, reason, kind| {
        READER.shared([a, b], &Evidence { reason, kind, score: 50 }).map(|text| text)
    };
    let joe = with(
        user(1, "Joe", &["email:ann@x.org", "email:joe.s@gmail.com", "handle:joe.smith"]),
        &[("contact", text("eve@x.org"))],
    );
    let other = with(
        user(2, "JOE", &["email:joes+1@gmail.com", "handle:joesmith84"]),
        &[("note", text("ann@x.org")), ("list", Value::List(vec!["Eve@x.org".to_owned()]))],
    );
    let email = Some(Kind::Email);
    let check = |reason, kind, a: &str, b: &str| {
        assert_eq!(shared(&joe, &other, reason, kind), [a, b], "{reason:?}");
        assert_eq!(shared(&other, &joe, reason, kind), [b, a], "{reason:?}");
    };
    check(Reason::SameMailbox, email, "joe.s@gmail.com", "joes+1@gmail.com");
    check(Reason::IdentityInAttribute, email, "ann@x.org", "ann@x.org");
    check(Reason::SameAttribute, email, "eve@x.org", "Eve@x.org");
    check(Reason::NearHandle, Some(Kind::Handle), "joe.smith", "joesmith84");
    check(Reason::SameName, None, "Joe", "JOE");
    check(Reason::LookalikeHandle, Some(Kind::Handle), "", "");
    check(Reason::HeldIdentity, email, "", "");
}

#[test]
fn the_same_full_name_alone_is_a_weak_match() {
    let joe = user(1, "Joe Smith", &["email:joe.smith@example.com", "handle:wolf"]);
    let other = user(2, "joe smith", &["email:joesmith@example.org", "handle:hawk"]);
    assert_eq!(reasons(&[joe.clone(), other.clone()]), [(Reason::SameName, 30)]);
    let numbered = ["jwolf555", "jwolf1908"].map(|name| format!("handle:{name}"));
    let wolves = [1, 2].map(|n| user(n, "Jo Wolf", &[&numbered[usize::from(n) - 1]]));
    assert_eq!(reasons(&wolves), [(Reason::SameName, 30)]);
    let unspaced = [1, 2].map(|n| user(n, "王小明", &[]));
    assert_eq!(reasons(&unspaced), [(Reason::SameName, 30)]);
    let short = [1, 2].map(|n| user(n, "Joe", &[]));
    assert_eq!(reasons(&short), [], "a single name");
    let empty = |n| user(n, "", &["handle:joe"]);
    assert_eq!(reasons(&[empty(1), User { identities: vec![], ..empty(2) }]), []);

    let similar = user(2, "joe smith", &["email:joesmith@example.com", "handle:hawk"]);
    let found = reasons(&[joe, similar]);
    assert_eq!(found, [(Reason::SimilarEmail, 55), (Reason::SameName, 30)]);
}

#[test]
fn a_common_name_lowers_the_score() {
    let joes = |count: u8| -> Vec<_> {
        let handle = |n: u8| match n {
            1 => "handle:joe.smith".to_owned(),
            2 => "handle:joesmith84".to_owned(),
            n => format!("handle:wolf{n}"),
        };
        (1..=count).map(|n| user(n, "Joe Smith", &[&handle(n)])).collect()
    };
    assert_eq!(reasons(&joes(2)), [(Reason::NearHandle, 55)]);
    assert_eq!(reasons(&joes(4)), [(Reason::NearHandle, 27)]);
    assert_eq!(reasons(&joes(200)), []);
    let [joe, mut jane] = <[User; 2]>::try_from(joes(2)).unwrap();
    jane.display_name = "Jane Smith".to_owned();
    assert_eq!(reasons(&[joe, jane]), []);
}

#[test]
fn addresses_in_attributes_match() {
    let joe = user(1, "Joe", &["email:joe@example.com", "phone:+14155552671"]);
    let with_contact =
        |n, value| with(user(n, "", &[&format!("handle:wolf{n}")]), &[("contact", value)]);
    let list = Value::List(vec!["x".to_owned(), "Joe+x@Example.com".to_owned()]);
    for value in [text(" JOE@example.com "), text("+1 (415) 555-2671"), list] {
        let found = reasons(&[joe.clone(), with_contact(2, value)]);
        assert_eq!(found, [(Reason::IdentityInAttribute, 70)]);
    }
    let both = [2, 3].map(|n| with_contact(n, text("ann@example.com")));
    assert_eq!(reasons(&both), [(Reason::SameAttribute, 40)]);
    let dotted = with_contact(2, text("j.oe@example.com"));
    assert_eq!(reasons(&[joe.clone(), dotted]), [(Reason::IdentityInAttribute, 42)]);

    for value in [text("415 555 2671"), text("joe at example.com"), text("@joe"), Value::Int(7)] {
        assert_eq!(reasons(&[joe.clone(), with_contact(2, value)]), []);
    }
    // A team whose members all state the manager's address.
    let mut team = vec![joe];
    team.extend((2..20).map(|n| with_contact(n, text("joe@example.com"))));
    assert_eq!(reasons(&team), [(Reason::IdentityInAttribute, 7)]);
    assert_eq!(reasons(&team[1..]), [(Reason::SameAttribute, 4)]);
}

#[test]
fn an_identity_repeated_in_an_attribute_counts_once() {
    let contact = [("contact", text("joe@example.com"))];
    let joe = with(user(1, "", &["email:joe@example.com"]), &contact);
    let other = with(user(2, "", &[]), &contact);
    assert_eq!(reasons(&[joe, other]), [(Reason::IdentityInAttribute, 70)]);
}

#[test]
fn a_held_address_matches_until_the_hold_ends() {
    let former = user(1, "", &["handle:joe"]);
    let now = user(2, "", &["email:joe+1@example.com"]);
    let both = [former.clone(), now];
    let held = |until| reasons_held(&both, Some((&former, "email:joe@example.com", until)));
    assert_eq!(held(2_000), [(Reason::HeldIdentity, 75)]);
    assert_eq!(held(500), []);
}

#[test]
fn look_alike_handles_match() {
    let latin = user(1, "Joe", &["handle:scope"]);
    let cyrillic = user(2, "Joseph", &["handle:ѕсоре"]);
    assert_eq!(reasons(&[latin.clone(), cyrillic]), [(Reason::LookalikeHandle, 50)]);
    assert_eq!(reasons(&[latin, user(2, "Joseph", &["handle:sc0pe"])]), []);
}

#[test]
fn scores_combine_to_99_at_most() {
    let evidence = |reason: Reason, score| Evidence { reason, kind: Some(Kind::Email), score };
    let of = |scores: &[u8]| {
        let all = [Reason::SameMailbox, Reason::NearHandle, Reason::HeldIdentity];
        let evidence = scores.iter().zip(all).map(|(score, reason)| evidence(reason, *score));
        Match::from_evidence(evidence.collect()).map(|found| found.score)
    };
    assert_eq!((of(&[]), of(&[0])), (None, None));
    assert_eq!((of(&[50]), of(&[50, 50]), of(&[99, 99, 99])), (Some(50), Some(75), Some(99)));
    let twice = vec![evidence(Reason::SameMailbox, 40), evidence(Reason::SameMailbox, 60)];
    let found = Match::from_evidence(twice).unwrap();
    assert_eq!((found.score, found.evidence), (60, vec![evidence(Reason::SameMailbox, 60)]));
}

#[test]
fn deleted_and_merged_users_are_no_duplicates() {
    assert!(is_present(State::Active) && is_present(State::Disabled));
    assert!(!is_present(State::Merged { into: id(1) }));
    assert!(!is_present(State::Deleted { delete_time: NOW, purge_time: NOW }));
}

#[test]
fn the_best_pairs_stay() {
    let mut pairs = DuplicatePairs::new(3);
    for n in (1..100).chain(1..100) {
        let found = Match { score: n, evidence: Vec::new() };
        pairs.add(DuplicatePair { users: [id(0), id(n)], found });
    }
    let best = pairs.into_best();
    assert_eq!(best.iter().map(|pair| pair.found.score).collect::<Vec<_>>(), [99, 98, 97]);
}

/// The groups of an index with `limit` entries, and the number of its ranges. Each range adds all
/// entries again.
fn groups(entries: &[(Key, LocalityId)], limit: usize) -> (Vec<Vec<LocalityId>>, usize) {
    let (mut index, mut groups, mut ranges) = (KeyIndex::new(limit), Vec::new(), 0);
    loop {
        entries.iter().for_each(|(key, user)| index.add(*key, *user));
        index.sort();
        while let Some(group) = index.next_group() {
            groups.push(group.iter().map(|(_, id)| *id).collect());
        }
        ranges += 1;
        if !index.next_range() {
            return (groups, ranges);
        }
    }
}

#[test]
fn ranges_find_the_groups_that_one_pass_finds() {
    let users: Vec<_> = (0..200_u8)
        .map(|n| user(n, "", &[&format!("email:joe+{n}@{}.example.com", n % 70)]))
        .collect();
    let entries: Vec<_> = users
        .iter()
        .flat_map(|user| READER.keys(&READER.profile(user)).into_iter().map(|key| (key, user.id)))
        .collect();
    let (whole, once) = groups(&entries, 1_000);
    assert_eq!((whole.len(), once), (70, 1));
    let (parts, ranges) = groups(&entries, 20);
    assert_eq!(parts, whole);
    assert!(ranges > 5, "{ranges}");
    // A group that does not fit is truncated.
    let (cut, _) = groups(&entries, 2);
    assert_eq!(cut.iter().map(Vec::len).max(), Some(2));
}

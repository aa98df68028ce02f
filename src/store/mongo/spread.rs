//! Where to cut users, requests and claims into ranges before the first is there, so that all shards work from the first
//! day. Pure: what a cluster makes of it is in `cluster`.
//!
//! Ids and hashes spread evenly. Claims do not: their keys begin with tenant and kind, and continue as people's names,
//! calling codes and providers do. Each kind gets ranges of its own, about equal by the tables below, which say how the
//! first characters of its values are distributed. Where real data differ, the balancer has the last word.

use mongodb::bson::Bson;

use super::schema::id_value;
use crate::directory::Tenant;
use crate::identifier::Kind;
use crate::locality::split_points;

/// Ranges of ids for each shard: a shard that is added later takes whole ones.
const RANGES_OF_IDS: usize = 4;
/// Ranges of each kind for each shard: where the tables are wrong, two ranges err less than one.
const RANGES_OF_A_KIND: usize = 2;

/// The first key of a range, and the number of the shard that is to have it. What lies before the first range's key is
/// for shard 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    pub start: Bson,
    pub shard: usize,
}

/// The ranges of a collection whose ids are spread evenly. Neighbours lie on different shards, so that nothing joins them.
pub fn of_ids(shards: usize) -> Vec<Range> {
    let starts = split_points(shards * RANGES_OF_IDS).into_iter().zip(1..);
    starts.map(|(id, n)| Range { start: id_value(id), shard: n % shards }).collect()
}

/// The ranges of the claims of `tenants`, each of whose kinds has as many on every shard.
pub fn of_claims(tenants: &[Tenant], shards: usize) -> Vec<Range> {
    let mut tenants: Vec<_> = tenants.iter().map(Tenant::as_str).collect();
    tenants.sort_unstable();
    tenants.dedup();
    tenants.into_iter().flat_map(|tenant| of_tenant(tenant, shards)).collect()
}

fn of_tenant(tenant: &str, shards: usize) -> Vec<Range> {
    let kinds = Kind::ALL.into_iter().enumerate().flat_map(|(first, kind)| {
        let starts = starts(kind, shards * RANGES_OF_A_KIND).into_iter().enumerate();
        starts.map(move |(n, start)| (format!("{tenant},{kind},{start}"), (first + n) % shards))
    });
    // Keys have a comma after the tenant, and a hyphen is what follows that: the last kind ends with its tenant.
    let end = (format!("{tenant}-"), 0);
    kinds.chain([end]).map(|(start, shard)| Range { start: Bson::String(start), shard }).collect()
}

/// What the values of `count` ranges of a kind begin with. The first is empty: it begins where the kind does.
fn starts(kind: Kind, count: usize) -> Vec<String> {
    let mut starts: Vec<_> = (0..count).map(|n| value(parts(kind), n as f64 / count as f64)).collect();
    starts[0].clear();
    starts.dedup();
    starts
}

/// A part of a kind's values: what they begin with, their share, and how the next characters are distributed.
struct Part(&'static str, u16, &'static [&'static [Letter]]);

/// A character and its share.
type Letter = (char, u16);

/// The value before which a share `at` of all values lies, cut after some characters.
fn value(parts: &[Part], at: f64) -> String {
    let (n, mut rest) = find(parts.iter().map(|part| part.1), at);
    let Part(start, _, letters) = &parts[n];
    let mut value = (*start).to_owned();
    for letters in *letters {
        if rest < SMALL {
            break;
        }
        let (n, within) = find(letters.iter().map(|letter| letter.1), rest);
        value.push(letters[n].0);
        rest = within;
    }
    value
}

/// Less than this share of a range is not worth another character.
const SMALL: f64 = 1e-6;

/// Which of the shares `at` falls into, and how far into it.
fn find(shares: impl Iterator<Item = u16> + Clone, at: f64) -> (usize, f64) {
    let mut rest = at * f64::from(shares.clone().sum::<u16>()) + SMALL;
    let last = shares.clone().count() - 1;
    for (n, share) in shares.map(f64::from).enumerate() {
        if rest < share || n == last {
            return (n, ((rest - SMALL) / share).clamp(0.0, 1.0));
        }
        rest -= share;
    }
    (last, 0.0)
}

fn parts(kind: Kind) -> &'static [Part] {
    match kind {
        Kind::Email | Kind::Handle => &[Part("", 1, NAME)],
        Kind::Phone => PHONE,
        Kind::Social => SOCIAL,
        Kind::Url => URL,
    }
}

/// What emails and handles begin with: a given name or its initial in seven of ten, a surname in three of ten, in
/// thousandths of the population, from the frequencies of names in the 1990 census of the United States. Digits are
/// added: fifteen in a thousand handles begin with one.
const NAME: &[&[Letter]] = &[FIRST, SECOND, THIRD];

#[rustfmt::skip]
const FIRST: &[Letter] = &[
    ('0', 3), ('1', 3), ('2', 2), ('3', 2), ('5', 2), ('7', 3),
    ('a', 55), ('b', 60), ('c', 74), ('d', 65), ('e', 38), ('f', 23), ('g', 39), ('h', 39), ('i', 6), ('j', 104),
    ('k', 37), ('l', 53), ('m', 100), ('n', 18), ('o', 7), ('p', 37), ('q', 1), ('r', 73), ('s', 71), ('t', 40),
    ('u', 1), ('v', 14), ('w', 40), ('y', 3), ('z', 2),
];

#[rustfmt::skip]
const SECOND: &[Letter] = &[
    ('a', 259), ('b', 1), ('c', 12), ('d', 12), ('e', 141), ('g', 1), ('h', 55), ('i', 113), ('l', 45), ('m', 12),
    ('n', 23), ('o', 160), ('p', 3), ('r', 67), ('s', 6), ('t', 18), ('u', 51), ('v', 5), ('w', 3), ('y', 12),
];

#[rustfmt::skip]
const THIRD: &[Letter] = &[
    ('a', 83), ('b', 35), ('c', 49), ('d', 23), ('e', 58), ('f', 8), ('g', 17), ('h', 24), ('i', 53), ('j', 1),
    ('k', 4), ('l', 89), ('m', 46), ('n', 113), ('o', 42), ('p', 4), ('r', 161), ('s', 49), ('t', 51), ('u', 25),
    ('v', 22), ('w', 15), ('x', 3), ('y', 23), ('z', 3),
];

/// Calling codes, or their first two digits, by mobile subscriptions in tens of millions, rounded, after the statistics
/// of the International Telecommunication Union. A directory of one country's people lies in few of these ranges.
#[rustfmt::skip]
const PHONE: &[Part] = &[
    Part("+1", 43, DIGITS), Part("+20", 10, DIGITS), Part("+21", 14, DIGITS), Part("+22", 13, DIGITS),
    Part("+23", 32, DIGITS), Part("+24", 9, DIGITS), Part("+25", 30, DIGITS), Part("+26", 10, DIGITS),
    Part("+27", 11, DIGITS), Part("+3", 42, DIGITS), Part("+40", 8, DIGITS), Part("+44", 11, DIGITS),
    Part("+48", 5, DIGITS), Part("+49", 10, DIGITS), Part("+50", 10, DIGITS), Part("+52", 15, DIGITS),
    Part("+54", 6, DIGITS), Part("+55", 21, DIGITS), Part("+56", 18, DIGITS), Part("+60", 8, DIGITS),
    Part("+62", 35, DIGITS), Part("+63", 16, DIGITS), Part("+64", 13, DIGITS), Part("+7", 27, DIGITS),
    Part("+81", 21, DIGITS), Part("+82", 8, DIGITS), Part("+84", 18, DIGITS), Part("+86", 178, DIGITS),
    Part("+88", 22, DIGITS), Part("+90", 9, DIGITS), Part("+91", 115, DIGITS), Part("+92", 19, DIGITS),
    Part("+93", 11, DIGITS), Part("+96", 19, DIGITS), Part("+98", 14, DIGITS), Part("+99", 9, DIGITS),
];

/// Providers by a guess at their shares, since nobody counts them together; their subjects by how each makes them. Google
/// numbers accounts from 10^20 with 64 bits, GitHub by a counter that has passed 2 * 10^8, Facebook gives numbers that
/// begin with 10, Discord and Twitter give times in some 10^18.
#[rustfmt::skip]
const SOCIAL: &[Part] = &[
    Part("apple/00", 15, DIGITS), Part("discord/", 3, SNOWFLAKE), Part("facebook/10", 20, DIGITS),
    Part("github/", 10, COUNTER), Part("google/1", 40, GOOGLE), Part("linkedin/", 5, TOKEN),
    Part("microsoft/", 7, HEX), Part("twitter/", 4, SNOWFLAKE), Part("x/", 2, SNOWFLAKE),
];

/// Places of profiles by a guess at their shares, other hosts by their first letters.
#[rustfmt::skip]
const URL: &[Part] = &[
    Part("https://a", 4, &[]), Part("https://f", 4, &[]), Part("https://github.com/", 14, NAME),
    Part("https://l", 4, &[]), Part("https://m", 4, &[]), Part("https://t", 4, &[]),
    Part("https://www.facebook.com/", 14, NAME), Part("https://www.instagram.com/", 10, NAME),
    Part("https://www.linkedin.com/in/", 30, NAME), Part("https://www.youtube.com/@", 5, NAME),
    Part("https://x.com/", 7, NAME),
];

#[rustfmt::skip]
const DIGIT: &[Letter] = &[
    ('0', 1), ('1', 1), ('2', 1), ('3', 1), ('4', 1), ('5', 1), ('6', 1), ('7', 1), ('8', 1), ('9', 1),
];
const DIGITS: &[&[Letter]] = &[DIGIT, DIGIT, DIGIT, DIGIT];
const GOOGLE: &[&[Letter]] = &[&[('0', 54), ('1', 46)], DIGIT, DIGIT, DIGIT];
/// Of the numbers below 2.3 * 10^8.
#[rustfmt::skip]
const COUNTER: &[&[Letter]] = &[
    &[('1', 48), ('2', 18), ('3', 5), ('4', 5), ('5', 5), ('6', 5), ('7', 5), ('8', 5), ('9', 4)],
    DIGIT, DIGIT, DIGIT,
];
#[rustfmt::skip]
const SNOWFLAKE: &[&[Letter]] = &[
    &[('1', 60), ('2', 8), ('3', 6), ('4', 5), ('5', 4), ('6', 4), ('7', 4), ('8', 4), ('9', 5)],
    DIGIT, DIGIT, DIGIT,
];
#[rustfmt::skip]
const HEX: &[&[Letter]] = &[&[
    ('0', 1), ('1', 1), ('2', 1), ('3', 1), ('4', 1), ('5', 1), ('6', 1), ('7', 1), ('8', 1), ('9', 1), ('a', 1),
    ('b', 1), ('c', 1), ('d', 1), ('e', 1), ('f', 1),
]];
/// Base 64, in some steps.
const TOKEN: &[&[Letter]] = &[&[('-', 11), ('A', 13), ('N', 13), ('_', 1), ('a', 13), ('n', 13)]];

#[cfg(test)]
mod tests {
    use super::*;

    const SHARDS: [usize; 6] = [1, 2, 3, 5, 10, 50];

    fn starts_of(ranges: &[Range]) -> Vec<String> {
        ranges.iter().map(|range| range.start.as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn ranges_ascend_and_are_on_every_shard() {
        let tenants = ["default", "acme", "acme-2", "acme"].map(|name| Tenant::parse(name).unwrap());
        for shards in SHARDS {
            let starts = starts_of(&of_claims(&tenants, shards));
            assert!(starts.is_sorted_by(|a, b| a < b), "{starts:?}");
            for tenant in ["default", "acme", "acme-2"] {
                for kind in Kind::ALL {
                    let ranges = of_claims(&tenants, shards);
                    let of_kind = ranges
                        .iter()
                        .filter(|range| range.start.as_str().unwrap().starts_with(&format!("{tenant},{kind},")));
                    let mut count = vec![0; shards];
                    of_kind.for_each(|range| count[range.shard] += 1);
                    assert!(count.iter().all(|count| *count >= 1), "{tenant} {kind} on {shards}: {count:?}");
                }
            }
            let mut count = vec![0; shards];
            // What lies before the first range is for shard 0.
            count[0] = 1;
            of_ids(shards).iter().for_each(|range| count[range.shard] += 1);
            assert!(count.iter().all(|count| *count == RANGES_OF_IDS), "{count:?}");
        }
    }

    #[test]
    fn the_tables_ascend() {
        for kind in Kind::ALL {
            assert!(parts(kind).is_sorted_by(|a, b| a.0 < b.0), "{kind}");
            let letters = parts(kind).iter().flat_map(|part| part.2);
            letters.for_each(|letters| assert!(letters.is_sorted_by(|a, b| a.0 < b.0 && a.1 > 0), "{kind}"));
        }
    }

    #[test]
    fn values_stand_where_their_shares_end() {
        assert_eq!(value(&[Part("", 1, DIGITS)], 0.25), "25");
        assert_eq!(value(&[Part("a", 1, &[]), Part("b", 1, DIGITS)], 0.5), "b");
        assert_eq!(value(&[Part("a", 1, &[]), Part("b", 1, DIGITS)], 0.75), "b5");
        assert_eq!(starts(Kind::Email, 3), ["", "gas", "moa"].map(|start| start.to_owned()));
    }
}

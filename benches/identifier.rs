//! The time of one normalisation of each kind, and of the identity key.

use divan::{Bencher, black_box};
use polynym_identifier::{Identifier, IdentityKey, RawIdentifier, warm_up};

fn main() {
    warm_up();
    divan::main();
}

fn parse(bencher: Bencher<'_, '_>, raw: RawIdentifier<'_>) {
    assert!(Identifier::parse(raw).is_ok(), "{raw}");
    bencher.bench(|| Identifier::parse(black_box(raw)));
}

#[divan::bench(args = ["joe@example.com", "Joe.Smith+news@Mail.Example.COM", "用户@exämple.com"])]
fn email(bencher: Bencher<'_, '_>, typed: &str) {
    parse(bencher, RawIdentifier::Email(typed));
}

#[divan::bench(args = ["joe_smith_99", "@JoeSmith", "@Ｊoé_99", "ѕсоре"])]
fn handle(bencher: Bencher<'_, '_>, typed: &str) {
    parse(bencher, RawIdentifier::Handle(typed));
}

#[divan::bench(args = [("+14155552300", ""), ("(415) 555-2300", "US"), ("+447400123456", "")])]
fn phone(bencher: Bencher<'_, '_>, (number, region): (&str, &str)) {
    parse(bencher, RawIdentifier::Phone { number, region });
}

#[divan::bench]
fn social(bencher: Bencher<'_, '_>) {
    let (provider, subject) = ("GitHub", "583231");
    parse(bencher, RawIdentifier::Social { provider, subject });
}

#[divan::bench(args = [
    "https://github.com/joe",
    "https://www.LinkedIn.com/in/joe.e.smith/?trk=x",
    "https://exämple.com/%c3%bc",
])]
fn url(bencher: Bencher<'_, '_>, typed: &str) {
    parse(bencher, RawIdentifier::Url(typed));
}

#[divan::bench]
fn key(bencher: Bencher<'_, '_>) {
    let joe = Identifier::parse(RawIdentifier::Email("joe@example.com")).expect("a valid address");
    bencher.bench(|| IdentityKey::new(black_box("default"), black_box(&joe)));
}

#[divan::bench(args = ["joe_smith_99", "joé_99", "ѕсоре"])]
fn guard(bencher: Bencher<'_, '_>, typed: &str) {
    let handle = Identifier::parse(RawIdentifier::Handle(typed)).expect("a valid handle");
    bencher.bench(|| black_box(&handle).guard());
}

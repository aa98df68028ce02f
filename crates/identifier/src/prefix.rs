//! Starts and ends of identifiers, folded like stored identifiers.

use precis_profiles::UsernameCaseMapped;
use precis_profiles::precis_core::profile::Rules;

use super::kind::Kind;
use super::raw::RawIdentifier;
use super::rules::Rules as Version;
use super::trace::nfc;
use super::{phone, url};

impl Version {
    /// The starts of the canonical forms, by these rules, of the identifiers of a kind that start
    /// with typed text: case, width and composition are folded, phone numbers lose their
    /// punctuation. There are several if the next character decides: a capital sigma is final at
    /// the end of a word, and an escaped `@` of an address begins a profile or ends a page.
    ///
    /// ```
    /// use polynym_identifier::{Kind, Rules};
    ///
    /// let fold = |kind, typed| Rules::PRESENT.fold_prefix(kind, typed);
    /// assert_eq!(fold(Kind::Email, "JOE@Exam"), ["joe@exam"]);
    /// assert_eq!(fold(Kind::Email, "ΑΣ"), ["ασ", "ας"]);
    /// assert_eq!(fold(Kind::Handle, "@ＪΑΣ"), ["jασ"]);
    /// assert_eq!(fold(Kind::Url, "http://Twitter.com/Jo"), ["https://x.com/jo"]);
    /// ```
    pub fn fold_prefix(self, kind: Kind, typed: &str) -> Vec<String> {
        vec![match kind {
            Kind::Email => return email(typed),
            Kind::Handle => handle(typed),
            Kind::Phone => phone::dialled_part(typed).unwrap_or_else(|| typed.to_owned()),
            Kind::Social => social(typed),
            Kind::Url => return url::prefixes(typed),
        }]
    }
}

/// The name is in lower case and NFC. The name of a prefix without a domain goes on, or ends there.
fn email(typed: &str) -> Vec<String> {
    match typed.split_once('@') {
        Some((local, domain)) => vec![format!("{}@{}", lower(local), self::domain(domain))],
        None => {
            let mut going_on = lower(&format!("{typed}{NEIGHBOUR}"));
            going_on.truncate(going_on.len() - NEIGHBOUR.len_utf8());
            distinct([going_on, lower(typed)])
        }
    }
}

/// The text in lower case and NFC, like the name of an address.
fn lower(text: &str) -> String {
    nfc(&nfc(text).to_lowercase()).into_owned()
}

/// A letter that composes with no other.
const NEIGHBOUR: char = 'x';

fn distinct([first, second]: [String; 2]) -> Vec<String> {
    if first == second { vec![first] } else { vec![first, second] }
}

/// The complete labels of a domain, in ASCII, then the start of the last one.
fn domain(typed: &str) -> String {
    let (complete, last) = match typed.rfind('.') {
        Some(at) => typed.split_at(at),
        None => ("", typed),
    };
    let ascii = idna::domain_to_ascii(complete).unwrap_or_else(|_| complete.to_lowercase());
    ascii + &last.to_lowercase()
}

/// The mappings of RFC 8265, and without the `@` in front.
fn handle(typed: &str) -> String {
    let name = typed.strip_prefix(['@', '＠']).unwrap_or(typed);
    let profile = UsernameCaseMapped::new();
    let fold = || {
        let wide = profile.width_mapping_rule(name).ok()?;
        let lower = profile.case_mapping_rule(wide).ok()?;
        Some(profile.normalization_rule(lower).ok()?.into_owned())
    };
    fold().unwrap_or_else(|| name.to_lowercase())
}

/// The short name of a provider is in lower case.
fn social(typed: &str) -> String {
    match typed.split_once('/') {
        Some((provider, subject)) if !provider.contains('%') => {
            format!("{}/{subject}", provider.to_ascii_lowercase())
        }
        None if !typed.contains('%') => typed.to_ascii_lowercase(),
        _ => typed.to_owned(),
    }
}

impl Version {
    /// The ends of the canonical forms, by these rules, of the identifiers of a kind that end in
    /// typed text: case and the domains of addresses are folded, phone numbers lose their
    /// punctuation. There are several if the character before decides: a capital sigma is final
    /// after a letter.
    ///
    /// ```
    /// use polynym_identifier::{Kind, Rules};
    ///
    /// let fold = |kind, typed| Rules::PRESENT.fold_suffix(kind, typed);
    /// assert_eq!(fold(Kind::Email, "@Exämple.ORG"), ["@xn--exmple-cua.org"]);
    /// assert_eq!(fold(Kind::Email, "Σ@x.org"), ["ς@x.org", "σ@x.org"]);
    /// assert_eq!(fold(Kind::Phone, "555-26 71"), ["5552671"]);
    /// ```
    pub fn fold_suffix(self, kind: Kind, typed: &str) -> Vec<String> {
        vec![match kind {
            Kind::Email => return self.address_end(typed),
            Kind::Phone => phone::dialled_part(typed).unwrap_or_else(|| typed.to_owned()),
            Kind::Handle => handle(typed),
            Kind::Social | Kind::Url => typed.to_owned(),
        }]
    }

    /// The end of an address: of its local part, then its domain; or an end of the domain, whose
    /// first label may be cut.
    fn address_end(self, typed: &str) -> Vec<String> {
        match (typed.rsplit_once('@'), typed.split_once('.')) {
            (Some((local, domain)), _) => {
                let domain = self.domain(domain);
                let after_letter = lower(&format!("{NEIGHBOUR}{local}")).split_off(1);
                let ends = distinct([after_letter, lower(local)]).into_iter();
                ends.map(|local| format!("{local}@{domain}")).collect()
            }
            (None, Some((label, domain))) => {
                vec![format!("{}.{}", label.to_lowercase(), self.domain(domain))]
            }
            (None, None) => vec![typed.to_lowercase()],
        }
    }

    /// The canonical form of a domain; in lower case if it has none.
    fn domain(self, typed: &str) -> String {
        let address = format!("x@{typed}");
        let parsed = self.parse(RawIdentifier::Email(&address));
        let canonical = parsed.ok().and_then(|address| {
            address.canonical().rsplit_once('@').map(|(_, domain)| domain.to_owned())
        });
        canonical.unwrap_or_else(|| typed.to_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_folded_like_stored_values() {
        let cases = [
            (Kind::Email, "JOE", "joe"),
            (Kind::Email, "ασ", "ασ"),
            (Kind::Email, "ΑΣ@Ex", "ας@ex"),
            (Kind::Email, "joe@Exämple.CO", "joe@xn--exmple-cua.co"),
            (Kind::Email, "Jose\u{301}", "jos\u{e9}"),
            (Kind::Email, "", ""),
            (Kind::Handle, "@JOE", "joe"),
            (Kind::Handle, "ΜΑΣ", "μασ"),
            (Kind::Handle, "ＪＯ", "jo"),
            (Kind::Handle, "İ", "i\u{307}"),
            (Kind::Handle, "", ""),
            (Kind::Phone, "+1 (415) 55", "+141555"),
            (Kind::Phone, "tel:+1-41", "+141"),
            (Kind::Phone, "+٤٩", "+49"),
            (Kind::Phone, "+1x", "+1x"),
            (Kind::Social, "GitHub/5A", "github/5A"),
            (Kind::Social, "GIT", "git"),
            (Kind::Social, "https%3A%2F%2FX", "https%3A%2F%2FX"),
            (Kind::Url, "HTTP://X.com/@Jo", "https://x.com/jo"),
            (Kind::Url, "https://DE.linkedin.com/in/Jo", "https://www.linkedin.com/in/jo"),
            (Kind::Url, "https://Example.com/Jo%7e", "https://example.com/Jo~"),
            (Kind::Url, "https://Exa", "https://exa"),
            (Kind::Url, "https://x.com/joe/Re", "https://x.com/joe/Re"),
            (Kind::Url, "HTTPS", "https"),
            (Kind::Url, "", ""),
        ];
        for (kind, typed, folded) in cases {
            assert_eq!(Version::PRESENT.fold_prefix(kind, typed), [folded], "{kind} {typed}");
        }
    }

    #[test]
    fn ends_are_folded_like_stored_values() {
        let cases = [
            (Kind::Email, "@Firma.Example", "@firma.example"),
            (Kind::Email, "Joe@FIRMA.example", "joe@firma.example"),
            (Kind::Email, "ma.Exämple.org", "ma.xn--exmple-cua.org"),
            (Kind::Email, ".ORG", ".org"),
            (Kind::Email, "ORG", "org"),
            (Kind::Handle, "SMITH", "smith"),
            (Kind::Phone, "(555) 26-71", "5552671"),
            (Kind::Phone, "٢٦٧١", "2671"),
            (Kind::Social, "5A", "5A"),
            (Kind::Url, "/Jo", "/Jo"),
        ];
        for (kind, typed, folded) in cases {
            assert_eq!(Version::PRESENT.fold_suffix(kind, typed), [folded], "{kind} {typed}");
        }
    }

    /// Each part of a stored address, in capitals, finds it.
    #[test]
    fn parts_of_an_address_are_folded_like_the_whole() {
        for typed in ["ΝΙΚΑΣ@x.gr", "Σ@x.gr", "Α.Σ.Σ@x.gr", "ΣΣ-ΑΣ@x.gr", "νικας@x.gr", "İΣ@x.gr"]
        {
            let stored = Version::PRESENT.parse(RawIdentifier::Email(typed)).unwrap();
            let stored = stored.canonical();
            for (at, c) in typed.char_indices() {
                let starts = Version::PRESENT.fold_prefix(Kind::Email, &typed[..at + c.len_utf8()]);
                let is_start = |start: &String| stored.starts_with(start);
                assert!(starts.iter().any(is_start), "{typed} {at} {starts:?}");
                let ends = Version::PRESENT.fold_suffix(Kind::Email, &typed[at..]);
                assert!(ends.iter().any(|end| stored.ends_with(end)), "{typed} {at} {ends:?}");
            }
        }
    }
}

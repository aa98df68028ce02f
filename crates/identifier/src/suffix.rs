//! Ends of identifiers, folded like stored identifiers.

use super::kind::Kind;
use super::raw::RawIdentifier;
use super::rules::Rules;

impl Rules {
    /// The end of the canonical forms, by these rules, of the identifiers of a kind that end in
    /// typed text: case and the domains of addresses are folded, phone numbers lose their
    /// punctuation.
    ///
    /// ```
    /// use polynym_identifier::{Kind, Rules};
    ///
    /// let fold = |kind, typed| Rules::PRESENT.fold_suffix(kind, typed);
    /// assert_eq!(fold(Kind::Email, "@Exämple.ORG"), "@xn--exmple-cua.org");
    /// assert_eq!(fold(Kind::Phone, "555-26 71"), "5552671");
    /// ```
    pub fn fold_suffix(self, kind: Kind, typed: &str) -> String {
        match kind {
            Kind::Email => self.address_end(typed),
            Kind::Phone => typed.chars().filter(|c| !is_punctuation(*c)).collect(),
            Kind::Handle => self.fold_prefix(kind, typed),
            Kind::Social | Kind::Url => typed.to_owned(),
        }
    }

    /// The end of an address: of its local part, then its domain; or an end of the domain, whose
    /// first label may be cut.
    fn address_end(self, typed: &str) -> String {
        match (typed.rsplit_once('@'), typed.split_once('.')) {
            (Some((local, domain)), _) => {
                let local = self.fold_prefix(Kind::Email, local);
                format!("{local}@{}", self.domain(domain))
            }
            (None, Some((label, domain))) => {
                format!("{}.{}", label.to_lowercase(), self.domain(domain))
            }
            (None, None) => typed.to_lowercase(),
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

const fn is_punctuation(c: char) -> bool {
    matches!(c, ' ' | '-' | '/' | '.' | '(' | ')' | '\u{a0}' | '\u{2010}' | '\u{2011}')
}

#[cfg(test)]
mod tests {
    use super::*;

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
            (Kind::Social, "5A", "5A"),
            (Kind::Url, "/Jo", "/Jo"),
        ];
        for (kind, typed, folded) in cases {
            assert_eq!(Rules::PRESENT.fold_suffix(kind, typed), folded, "{kind} {typed}");
        }
    }
}

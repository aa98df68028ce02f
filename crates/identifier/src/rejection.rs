//! Rejections of values: the broken rule, its position, and advice.
//!
//! A rejection never contains the value, which is personal data.

use std::fmt;

use super::kind::Kind;

/// A rule that a value can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The input is longer than [`MAX_INPUT_BYTES`](super::MAX_INPUT_BYTES).
    TooLong,
    /// The email has no `@`.
    EmailAtMissing,
    /// The email has several `@`.
    EmailAtRepeated,
    /// Several addresses, with a comma, a semicolon or a blank between them.
    EmailSeveral,
    /// A name beside the address (RFC 5322 section 3.4), as in `Ann Lee <ann@example.com>`.
    EmailName,
    /// A `mailto:` link (RFC 6068).
    EmailScheme,
    /// Comments (RFC 5322 section 3.2.2) are not part of an address.
    EmailComment,
    /// Quoted local parts (RFC 5321 section 4.1.2) are not accepted.
    EmailQuoted,
    /// Address literals (RFC 5321 section 4.1.3) and domains that parse as IPv4 addresses are not
    /// accepted.
    EmailLiteral,
    /// A character that an unquoted local part cannot hold (RFC 5321, RFC 6531).
    EmailCharacter,
    /// An invisible character.
    EmailInvisible,
    /// A character for private use or an unassigned one (Unicode's General_Category Co and Cn).
    EmailUnassigned,
    /// A combining mark at the start.
    EmailMark,
    /// A dot at the start or end of the local part, or two together.
    EmailDot,
    /// The local part is empty or longer than 64 octets in its canonical form.
    EmailLocalLength,
    /// The domain does not pass UTS 46.
    EmailDomain,
    /// A character that IDNA 2008 (RFC 5892) does not allow in domains, or that its mapping (RFC
    /// 5895) does not have.
    EmailDomainCharacter,
    /// The canonical form is longer than 254 octets.
    EmailLength,
    /// A character outside PRECIS's IdentifierClass (RFC 8264).
    HandleCharacter,
    /// The Bidi rule of RFC 5893.
    HandleDirection,
    /// RFC 8265 changes or rejects its own result.
    HandleUnstable,
    /// Fewer than 1 or more than 64 code points.
    HandleLength,
    /// An `@` after the leading one.
    HandleAt,
    /// A leading `+`, as a phone number has.
    HandlePlus,
    /// No letter at all.
    HandleLetter,
    /// Scripts mixed beyond the highly restrictive level of UTS 39.
    HandleScripts,
    /// The region has no telephone numbers.
    PhoneRegion,
    /// A number in national form lacks a region.
    PhoneRegionMissing,
    /// A letter.
    PhoneLetter,
    /// An extension, or digits to dial after the call is answered.
    PhoneExtension,
    /// Another character that telephone numbers do not have.
    PhoneCharacter,
    /// A plus sign that is not before the first digit.
    PhonePlus,
    /// The numbering plan of the country does not have the number.
    PhoneNumber,
    /// The number is valid with its first digits as the calling code of its region, and without.
    PhoneAmbiguous,
    /// A decimal `.0` at the end, as spreadsheets write numbers.
    PhoneDecimal,
    /// The provider is neither `[a-z0-9][a-z0-9._-]{0,63}` nor a URL.
    SocialProvider,
    /// The provider is a URL that is not a valid issuer (OpenID Connect Core 1.0, section 2), or
    /// exceeds 255 bytes.
    SocialIssuer,
    /// The subject is empty or longer than 255 bytes.
    SocialSubjectLength,
    /// A control character in the subject.
    SocialSubjectControl,
    /// An invisible character in the subject.
    SocialSubjectInvisible,
    /// Not an absolute URL (WHATWG).
    UrlSyntax,
    /// Neither https nor http.
    UrlScheme,
    /// A user name or password before the host.
    UrlUserInfo,
    /// A port other than the scheme's own.
    UrlPort,
    /// A host with an empty label.
    UrlHost,
    /// White space inside of the address.
    UrlBlank,
    /// A fragment that tells pages apart, such as `#/joe`.
    UrlFragment,
    /// A log-in wall, a scanned or short link, or a redirect.
    UrlWrapper,
    /// A page of a known service that is nobody's profile.
    UrlPage,
    /// A post of a person at a known service, such as a photo or a video.
    UrlPost,
    /// A percent sign without two hexadecimal digits after it.
    UrlEscape,
    /// The canonical form is longer than 2,048 bytes.
    UrlLength,
}

impl Rule {
    /// The name of the rule, for programs.
    pub const fn as_str(self) -> &'static str {
        self.words().0
    }

    /// Advice for people on how to correct a value that breaks the rule.
    pub const fn advice(self) -> &'static str {
        self.words().1
    }

    /// The rule, broken at a position of the typed text.
    pub(super) fn at(self, position: usize) -> BrokenRule {
        BrokenRule { position: Some(position), ..self.into() }
    }

    #[allow(clippy::too_many_lines, reason = "a table with a row for each rule")]
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Rule::TooLong => ("too-long", "give at most 4096 bytes"),
            Rule::EmailAtMissing => ("email-at-missing", "write it as name@domain"),
            Rule::EmailAtRepeated => ("email-at-repeated", "keep only the @ before the domain"),
            Rule::EmailSeveral => ("email-several", "give one address"),
            Rule::EmailName => ("email-name", "write only what is between < and >"),
            Rule::EmailScheme => ("email-scheme", "leave out mailto: in front of the address"),
            Rule::EmailComment => ("email-comment", "leave out the part in parentheses"),
            Rule::EmailQuoted => ("email-quoted", "use a name that needs no quotes"),
            Rule::EmailLiteral => ("email-literal", "give a domain name instead of an address"),
            Rule::EmailCharacter => ("email-character", "remove the character from the name"),
            Rule::EmailInvisible => ("email-invisible", "remove the invisible character"),
            Rule::EmailUnassigned => ("email-unassigned", "use assigned characters only"),
            Rule::EmailMark => ("email-mark", "put a letter in front of the combining mark"),
            Rule::EmailDot => ("email-dot", "put dots only singly between other characters"),
            Rule::EmailLocalLength => ("email-local-length", "put 1 to 64 bytes before the @"),
            Rule::EmailDomain => ("email-domain", "give a valid domain name after the @"),
            Rule::EmailDomainCharacter => {
                ("email-domain-character", "use only letters, digits and hyphens in the domain")
            }
            Rule::EmailLength => ("email-length", "use an address of at most 254 bytes"),
            Rule::HandleCharacter => ("handle-character", "use letters, digits and ASCII signs"),
            Rule::HandleDirection => (
                "handle-direction",
                "start and end a right-to-left handle with right-to-left letters",
            ),
            Rule::HandleUnstable => ("handle-unstable", "use the lower-case letters of the script"),
            Rule::HandleLength => ("handle-length", "use 1 to 64 characters"),
            Rule::HandleAt => ("handle-at", "use @ only as the first character"),
            Rule::HandlePlus => ("handle-plus", "start with something other than +"),
            Rule::HandleLetter => ("handle-letter", "use at least one letter"),
            Rule::HandleScripts => ("handle-scripts", "keep to the letters of one script"),
            Rule::PhoneRegion => {
                ("phone-region", "give the country in ISO 3166 alpha-2, such as US")
            }
            Rule::PhoneRegionMissing => {
                ("phone-region-missing", "start with + and the country code, or give a region")
            }
            Rule::PhoneLetter => ("phone-letter", "write digits for the letters"),
            Rule::PhoneExtension => ("phone-extension", "leave out the extension"),
            Rule::PhoneCharacter => ("phone-character", "use digits, spaces and ( ) - . / only"),
            Rule::PhonePlus => ("phone-plus", "put one + in front of the first digit"),
            Rule::PhoneNumber => {
                ("phone-number", "check the digits: the country has no such number")
            }
            Rule::PhoneAmbiguous => {
                ("phone-ambiguous", "write it with + and the country code in front")
            }
            Rule::PhoneDecimal => ("phone-decimal", "leave out the .0 at the end"),
            Rule::SocialProvider => (
                "social-provider",
                "use an issuer's https URL, or 1 to 64 of a-z, 0-9, dot, underscore and hyphen, a \
                 letter or digit first",
            ),
            Rule::SocialIssuer => (
                "social-issuer",
                "use the issuer's URL exactly as in its tokens: https://, no query, at most 255 bytes",
            ),
            Rule::SocialSubjectLength => ("social-subject-length", "use 1 to 255 bytes"),
            Rule::SocialSubjectControl => {
                ("social-subject-control", "remove the control character")
            }
            Rule::SocialSubjectInvisible => {
                ("social-subject-invisible", "remove the invisible character")
            }
            Rule::UrlSyntax => ("url-syntax", "give the whole address, such as https://host/path"),
            Rule::UrlScheme => ("url-scheme", "start with https://"),
            Rule::UrlUserInfo => ("url-user-info", "leave out the part before the @"),
            Rule::UrlPort => ("url-port", "leave out the port"),
            Rule::UrlHost => ("url-host", "put single dots between the parts of the host"),
            Rule::UrlBlank => ("url-blank", "leave out the blank, or write it as %20"),
            Rule::UrlFragment => {
                ("url-fragment", "give an address that names the page without the part after the #")
            }
            Rule::UrlWrapper => {
                ("url-wrapper", "open the link, and give the address of the page that it leads to")
            }
            Rule::UrlPage => ("url-page", "give the address of a profile: this page is nobody's"),
            Rule::UrlPost => {
                ("url-post", "give the address of the person's profile: this one is of a post")
            }
            Rule::UrlEscape => ("url-escape", "write a percent sign itself as %25"),
            Rule::UrlLength => ("url-length", "use an address of at most 2048 bytes"),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A broken rule of some kind.
#[derive(Debug)]
pub(super) struct BrokenRule {
    rule: Rule,
    position: Option<usize>,
    calling_code: Option<u16>,
}

impl BrokenRule {
    /// A phone number that is valid with its first digits as this calling code, and without.
    pub(super) fn ambiguous(calling_code: u16) -> Self {
        BrokenRule { calling_code: Some(calling_code), ..Rule::PhoneAmbiguous.into() }
    }

    /// The same, in the text without its first `count` characters.
    pub(super) fn shifted_back(self, count: usize) -> Self {
        let position = self.position.and_then(|position| position.checked_sub(count));
        BrokenRule { position, ..self }
    }

    /// The same, after `count` further characters; without a position if that is unknown.
    pub(super) fn shifted(self, count: Option<usize>) -> Self {
        let position = self.position.zip(count).map(|(position, count)| position + count);
        BrokenRule { position, ..self }
    }

    /// The rejection of a value of this kind.
    pub(super) fn of(self, kind: Kind) -> Rejection {
        let BrokenRule { rule, position, calling_code } = self;
        Rejection { kind, rule, position, calling_code }
    }
}

impl From<Rule> for BrokenRule {
    fn from(rule: Rule) -> Self {
        BrokenRule { rule, position: None, calling_code: None }
    }
}

/// The reason why a value is not a valid identifier of its kind. Never contains the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Rejection {
    kind: Kind,
    rule: Rule,
    position: Option<usize>,
    calling_code: Option<u16>,
}

impl Rejection {
    /// The kind of the value.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The broken rule.
    pub const fn rule(&self) -> Rule {
        self.rule
    }

    /// The position in the typed text, in code points from 0, if known. For a social identifier it
    /// counts in the part that the rule names, for a phone in its number.
    pub const fn position(&self) -> Option<usize> {
        self.position
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a valid {}: rule {}", self.kind, self.rule)?;
        if let Some(position) = self.position {
            write!(f, " at character {}", position + 1)?;
        }
        if let Some(code) = self.calling_code {
            write!(f, "; it reads as +{code} {code}… and as +{code} …")?;
        }
        write!(f, "; {}", self.rule.advice())
    }
}

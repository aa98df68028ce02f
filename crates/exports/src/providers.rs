//! The names of providers. Those of public ones stand for the same accounts, whoever exports them.

use polynym_identifier::{Identifier, RawIdentifier};

/// The public providers that formats name differently: the name here, and theirs.
const SPELLINGS: [(&str, &[&str]); 9] = [
    ("apple", &["apple.com"]),
    ("facebook", &["facebook.com"]),
    ("github", &["github.com"]),
    ("google", &["google.com", "google-oauth2", "googleplus"]),
    ("linkedin", &["linkedin.com", "linkedin-openid-connect"]),
    ("microsoft", &["microsoft.com", "hotmail.com", "windowslive"]),
    ("paypal", &["paypal.com"]),
    ("twitter", &["twitter.com"]),
    ("yahoo", &["yahoo.com"]),
];
/// Further public providers, which formats name alike.
const FURTHER: [&str; 24] = [
    "amazon",
    "auth0",
    "bitbucket",
    "box",
    "discord",
    "dropbox",
    "gitlab",
    "instagram",
    "kakao",
    "line",
    "naver",
    "openshift-v4",
    "salesforce",
    "slack",
    "spotify",
    "stackoverflow",
    "steam",
    "tiktok",
    "twitch",
    "vk",
    "wechat",
    "weibo",
    "x",
    "yandex",
];

/// The name here of a provider that the file names by its kind.
pub fn public(name: &str) -> &str {
    let lower = name.trim().to_lowercase();
    let known = SPELLINGS.iter().find(|(_, others)| others.contains(&&*lower));
    known.map_or(name, |(name, _)| name)
}

/// The name here of a connection whose name somebody chose. One that is named like a public
/// provider may be anything, so it has the protocol before its name: its accounts are never those
/// of the public provider.
pub fn connection(protocol: &str, alias: &str) -> String {
    let raw = RawIdentifier::Social { provider: alias, subject: "1" };
    let parsed = Identifier::parse(raw).ok();
    let canonical = parsed.as_ref().and_then(|own| own.social_parts()).map(|(name, _)| name);
    let canonical =
        canonical.map_or_else(|| alias.trim().to_lowercase(), |name| name.to_lowercase());
    let prefix = format!("{protocol}-");
    // A name that has the protocol already is none that was kept apart.
    let is_public = is_public(canonical.trim_start_matches(&*prefix));
    if is_public { prefix + &canonical } else { alias.to_owned() }
}

/// Whether a name in lower case is one of a public provider, in any spelling.
pub fn is_public(name: &str) -> bool {
    let mut spellings = SPELLINGS.iter();
    FURTHER.contains(&name) || spellings.any(|(own, others)| *own == name || others.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_somebody_chose_are_kept_apart() {
        assert_eq!([public("google-oauth2"), public("GitHub.com")], ["google", "github"]);
        assert_eq!(public("warehouse"), "warehouse");
        for (alias, wanted) in [
            ("github", "oidc-github"),
            (" GitHub ", "oidc-github"),
            ("google.com", "oidc-google.com"),
            ("gitlab", "oidc-gitlab"),
            ("oidc-gitlab", "oidc-oidc-gitlab"),
            ("warehouse", "warehouse"),
        ] {
            assert_eq!(connection("oidc", alias), wanted);
        }
    }
}

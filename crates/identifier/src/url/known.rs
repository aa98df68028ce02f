//! Pages that a parameter identifies: of services, and of forum programs, which run on any host.
//!
//! These tables are part of the version of the rules: a new row needs a new version.

use super::query;
use crate::rejection::{BrokenRule, Rule};

/// A known page: its canonical host, if that differs, and the query that identifies it.
pub struct KnownPage {
    /// The canonical host of the service.
    pub host: Option<&'static str>,
    /// The identifying parameters, in the order of the table.
    pub query: String,
}

/// The page at this address, if it is known.
///
/// # Errors
/// [`Rule::UrlPage`]: the page of a service lacks the parameter, so that it shows no profile.
pub fn page(host: &str, path: &str, query: &str) -> Result<Option<KnownPage>, BrokenRule> {
    let is_at = |service: &&Service| service.has_host(host) && service.path == path;
    if let Some(service) = SERVICES.iter().find(is_at) {
        let value = query::value(query, service.parameter).ok_or(Rule::UrlPage)?;
        let query = format!("{}={value}", service.parameter);
        return Ok(Some(KnownPage { host: Some(service.host), query }));
    }

    let file = path.rsplit('/').next().unwrap_or_default();
    let programs = PROGRAMS.iter().filter(|program| program.file == file);
    let mut queries = programs.filter_map(|program| program.query(query));
    Ok(queries.next().map(|query| KnownPage { host: None, query }))
}

/// A service with a page that shows the profile with the id in a parameter.
struct Service {
    /// The canonical host.
    host: &'static str,
    /// Other hosts of the same pages.
    aliases: &'static [&'static str],
    /// The start of the hosts that countries have, such as `scholar.google.` in
    /// `scholar.google.co.uk`.
    countries: Option<&'static str>,
    path: &'static str,
    parameter: &'static str,
}

/// Sources:
///
/// - Google Scholar, <https://scholar.google.com/intl/en/scholar/citations.html>: a profile is
///   `citations?user=ID`; the hosts of countries (<https://www.google.com/supported_domains>) show
///   the same profiles.
/// - Hacker News, <https://github.com/HackerNews/API>: users are `user?id=NAME`; names are
///   case-sensitive.
/// - Scopus, <https://service.elsevier.com/app/answers/detail/a_id/11212>: author profiles are
///   `authid/detail.uri?authorId=ID`.
/// - Yelp, <https://www.yelp-support.com>: users are `user_details?userid=ID`.
/// - WhatsApp, <https://faq.whatsapp.com/5913398998672934>: `send?phone=NUMBER`.
/// - Google Play, <https://support.google.com/googleplay/android-developer>: developers are
///   `store/apps/dev?id=NUMBER`.
const SERVICES: [Service; 6] = [
    Service {
        host: "scholar.google.com",
        aliases: &[],
        countries: Some("scholar.google."),
        path: "/citations",
        parameter: "user",
    },
    Service {
        host: "news.ycombinator.com",
        aliases: &[],
        countries: None,
        path: "/user",
        parameter: "id",
    },
    Service {
        host: "www.scopus.com",
        aliases: &["scopus.com"],
        countries: None,
        path: "/authid/detail.uri",
        parameter: "authorId",
    },
    Service {
        host: "www.yelp.com",
        aliases: &["yelp.com", "m.yelp.com"],
        countries: None,
        path: "/user_details",
        parameter: "userid",
    },
    Service {
        host: "api.whatsapp.com",
        aliases: &["web.whatsapp.com"],
        countries: None,
        path: "/send",
        parameter: "phone",
    },
    Service {
        host: "play.google.com",
        aliases: &[],
        countries: None,
        path: "/store/apps/dev",
        parameter: "id",
    },
];

impl Service {
    fn has_host(&self, host: &str) -> bool {
        host == self.host
            || self.aliases.contains(&host)
            || self.countries.is_some_and(|start| is_country(host, start))
    }
}

/// Whether a host ends in a country's domain: `de`, `co.uk`, `com.br`.
pub fn is_country(host: &str, start: &str) -> bool {
    let Some(domain) = host.strip_prefix(start) else { return false };
    let country = ["co.", "com."].iter().find_map(|second| domain.strip_prefix(second));
    let country = country.unwrap_or(domain);
    country.len() == 2 && country.bytes().all(|b| b.is_ascii_lowercase())
}

/// A forum program with a page that shows the user with a number. Links add the reader's session.
struct Program {
    /// The file of the page, in any folder.
    file: &'static str,
    /// A parameter with a fixed value.
    mode: Option<(&'static str, &'static str)>,
    /// The parameter with the number of the user.
    id: &'static str,
}

/// Sources:
///
/// - phpBB: <https://github.com/phpbb/phpbb/blob/master/phpBB/memberlist.php>
/// - vBulletin 3 and 4: <https://www.vbulletin.com/docs/html/> (`member.php?u=`)
/// - MyBB: <https://github.com/mybb/mybb/blob/feature/member.php>
/// - FluxBB and PunBB: <https://github.com/fluxbb/fluxbb/blob/master/profile.php>
const PROGRAMS: [Program; 4] = [
    Program { file: "memberlist.php", mode: Some(("mode", "viewprofile")), id: "u" },
    Program { file: "member.php", mode: None, id: "u" },
    Program { file: "member.php", mode: Some(("action", "profile")), id: "uid" },
    Program { file: "profile.php", mode: None, id: "id" },
];

impl Program {
    /// The identifying part of a query, if it has one.
    fn query(&self, query: &str) -> Option<String> {
        let id =
            query::value(query, self.id).filter(|id| id.bytes().all(|b| b.is_ascii_digit()))?;
        match self.mode {
            Some((name, value)) if query::value(query, name) == Some(value) => {
                Some(format!("{name}={value}&{}={id}", self.id))
            }
            Some(_) => None,
            None => Some(format!("{}={id}", self.id)),
        }
    }
}

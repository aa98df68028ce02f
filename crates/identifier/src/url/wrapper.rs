//! Links that lead to another page: log-in walls, scanned links of mail filters, redirects and
//! short links. The address of the wrapper names no page of its own.
//!
//! This table is part of the version of the rules: a new row needs a new version.

use super::known::is_country;

/// Whether an address is that of a wrapper. `path` has no slash at its end.
pub fn is_wrapper(host: &str, path: &str) -> bool {
    is_in(WRAPPERS, host, path) || is_in(SHORT_LINKS, host, path)
}

/// Hosts, with the paths that are wrappers there; none: all.
type Rows = [(&'static [&'static str], &'static [&'static str])];

fn is_in(rows: &Rows, host: &str, path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    rows.iter().any(|(hosts, paths)| {
        hosts.iter().any(|pattern| has_host(host, pattern))
            && (paths.is_empty() || paths.iter().any(|start| is_below(&path, start)))
    })
}

/// Whether a host is this one, below it if the pattern starts with a dot, or that of a country if
/// it ends with one.
fn has_host(host: &str, pattern: &str) -> bool {
    if pattern.starts_with('.') {
        return host.ends_with(pattern);
    }
    if pattern.ends_with('.') { is_country(host, pattern) } else { host == pattern }
}

fn is_below(path: &str, start: &str) -> bool {
    path.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Wrappers. Sources:
///
/// - The list of redirects in ClearURLs' rules: <https://docs.clearurls.xyz/1.26.1/specs/rules/>,
///   <https://rules2.clearurls.xyz/data.minify.json> (Facebook, Instagram, Google, YouTube, VK,
///   Steam, Reddit, DuckDuckGo, Slack).
/// - Microsoft's Safe Links:
///   <https://learn.microsoft.com/en-us/defender-office-365/safe-links-about>
/// - Proofpoint's URL Defense: <https://help.proofpoint.com/Threat_Insight_Dashboard/API_Documentation/URL_Decoder_API>
/// - Mimecast's URL Protect, Cisco's Secure Email and Barracuda's Link Protection: the manuals of
///   their mail filters.
/// - matrix.to, <https://github.com/matrix-org/matrix.to>: the name is in the fragment.
/// - Log-in walls: where LinkedIn, Facebook, Instagram, X and Google lead readers who are not
///   logged in.
#[rustfmt::skip]
const WRAPPERS: &Rows = &[
    (&["linkedin.com", ".linkedin.com"],
     &["/authwall", "/checkpoint", "/login", "/m/login", "/redir", "/safety/go", "/signup",
       "/uas"]),
    (&["facebook.com", ".facebook.com", "fb.com", "www.fb.com"],
     &["/checkpoint", "/dialog", "/flx/warn", "/l.php", "/login", "/login.php", "/plugins",
       "/share.php", "/sharer", "/sharer.php"]),
    (&["l.facebook.com", "lm.facebook.com", "l.messenger.com", "l.instagram.com", "fb.me"], &[]),
    (&["instagram.com", ".instagram.com"], &["/accounts", "/challenge"]),
    (&["x.com", "www.x.com", "mobile.x.com", "twitter.com", ".twitter.com"],
     &["/account", "/i/flow", "/intent", "/login", "/logout", "/oauth", "/share"]),
    (&["github.com", "www.github.com"],
     &["/join", "/login", "/logout", "/session", "/sessions", "/signup"]),
    (&["google.com", "www.google.com", "www.google."], &["/url"]),
    (&["accounts.google.com", "consent.google.com", "consent.youtube.com"], &[]),
    (&["youtube.com", "www.youtube.com", "m.youtube.com"], &["/redirect", "/signin"]),
    (&["steamcommunity.com"], &["/linkfilter"]),
    (&["vk.com", "m.vk.com"], &["/away", "/away.php"]),
    (&["out.reddit.com", "slack-redir.net"], &[]),
    (&["duckduckgo.com"], &["/l"]),
    (&["www.bing.com"], &["/ck"]),
    (&[".safelinks.protection.outlook.com", "login.microsoftonline.com", "login.live.com"], &[]),
    (&["urldefense.com", "urldefense.proofpoint.com", "linkprotect.cudasvc.com",
       "secure-web.cisco.com", ".mimecast.com", ".mimecastprotect.com"], &[]),
    (&["bit.ly", "buff.ly", "goo.gl", "is.gd", "lnkd.in", "matrix.to", "ow.ly", "t.co",
       "tinyurl.com"], &[]),
];

/// Short links: what each service's button for sharing copies.
#[rustfmt::skip]
const SHORT_LINKS: &Rows = &[
    (&["amzn.to", "apple.co", "fb.watch", "link.deezer.com", "pin.it", "redd.it", "spotify.link",
       "vm.tiktok.com", "vt.tiktok.com", "youtu.be"], &[]),
    (&["facebook.com", ".facebook.com", "instagram.com", ".instagram.com"], &["/share"]),
    (&["tiktok.com", "www.tiktok.com", "m.tiktok.com"], &["/t"]),
];

//! Cookies: the session's id, and preferences (RFC 6265).

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cookie::{Cookie, SameSite};
use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The name of the session's cookie. Under TLS, the prefix lets a browser accept it from this host
/// alone.
const NAME: &str = "polynym_session";
const TLS_NAME: &str = "__Host-polynym_session";
/// The time for which preferences are kept.
const PREFERENCE_DAYS: i64 = 400;

/// The session's cookie of a console.
#[derive(Clone, Copy, Debug)]
pub struct SessionCookie {
    /// Whether browsers use TLS.
    pub is_tls: bool,
}

impl SessionCookie {
    const fn name(self) -> &'static str {
        if self.is_tls { TLS_NAME } else { NAME }
    }

    /// The id of the session that a request names.
    pub fn read(self, headers: &HeaderMap) -> Option<String> {
        value(headers, self.name())
    }

    /// The header that sets the cookie.
    pub fn set(self, id: &str) -> Option<HeaderValue> {
        self.header(Cookie::new(self.name(), id.to_owned()))
    }

    /// The header that removes the cookie.
    pub fn remove(self) -> Option<HeaderValue> {
        self.header(removed(self.name()))
    }

    fn header(self, cookie: Cookie<'_>) -> Option<HeaderValue> {
        secret(cookie, SameSite::Strict, self.is_tls)
    }
}

/// The sign-ins of a browser that may have begun at a provider and not ended.
pub const MAX_PENDING: usize = 4;

/// The cookie of a sign-in that has begun. Browsers send it when the provider leads back to the
/// console, which the session's cookie does not allow.
#[derive(Clone, Copy, Debug)]
pub struct PendingCookie {
    /// Its number, below [`MAX_PENDING`].
    pub slot: usize,
    /// Whether browsers use TLS.
    pub is_tls: bool,
}

impl PendingCookie {
    fn name(self) -> String {
        let prefix = if self.is_tls { "__Host-" } else { "" };
        format!("{prefix}polynym_sign_in_{}", self.slot)
    }

    /// The sealed sign-in.
    pub fn read(self, headers: &HeaderMap) -> Option<String> {
        value(headers, &self.name())
    }

    /// The header that sets the cookie for as long as somebody may take.
    pub fn set(self, sealed: &str, seconds: i64) -> Option<HeaderValue> {
        let mut cookie = Cookie::new(self.name(), sealed.to_owned());
        cookie.set_max_age(cookie::time::Duration::seconds(seconds));
        self.header(cookie)
    }

    /// The header that removes the cookie.
    pub fn remove(self) -> Option<HeaderValue> {
        self.header(removed(self.name()))
    }

    fn header(self, cookie: Cookie<'_>) -> Option<HeaderValue> {
        secret(cookie, SameSite::Lax, self.is_tls)
    }
}

/// The header of a cookie that no script sees.
fn secret(mut cookie: Cookie<'_>, same_site: SameSite, is_tls: bool) -> Option<HeaderValue> {
    cookie.set_http_only(true);
    cookie.set_same_site(same_site);
    cookie.set_secure(is_tls);
    cookie.set_path("/");
    HeaderValue::try_from(cookie.to_string()).ok()
}

/// A cookie that removes the one of this name.
fn removed<'n>(name: impl Into<Cow<'n, str>>) -> Cookie<'n> {
    let mut cookie = Cookie::new(name, "");
    cookie.make_removal();
    cookie
}

/// A preference that the browser keeps.
pub fn preference(headers: &HeaderMap, name: &str) -> Option<String> {
    value(headers, name)
}

/// The header that keeps a preference in the browser, for a year.
pub fn preference_cookie(name: &str, value: &str, path: &str) -> Option<HeaderValue> {
    let mut cookie = Cookie::new(name, value);
    cookie.set_http_only(true);
    cookie.set_same_site(SameSite::Strict);
    cookie.set_path(path);
    cookie.set_max_age(cookie::time::Duration::days(PREFERENCE_DAYS));
    HeaderValue::try_from(cookie.to_string()).ok()
}

/// The maximum bytes of a list that the browser keeps: it refuses cookies above 4,096 with name and
/// path.
const MAX_LIST_BYTES: usize = 3_600;

/// A list that the browser keeps, as JSON; empty if it keeps none that can be read.
pub fn kept_list<T: DeserializeOwned + Default>(headers: &HeaderMap, name: &str) -> T {
    let json = preference(headers, name).and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
    json.and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default()
}

/// Whether a browser keeps a list as long as this one.
pub fn is_kept(list: &impl Serialize) -> bool {
    list_text(list).len() <= MAX_LIST_BYTES
}

/// The header that keeps a list in the browser.
pub fn list_cookie(name: &str, list: &impl Serialize, path: &str) -> Option<HeaderValue> {
    preference_cookie(name, &list_text(list), path)
}

fn list_text(list: &impl Serialize) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(list).unwrap_or_default())
}

fn value(headers: &HeaderMap, name: &str) -> Option<String> {
    let texts = headers.get_all(COOKIE).iter().filter_map(|header| header.to_str().ok());
    let mut cookies = texts.flat_map(|text| Cookie::split_parse(text).flatten());
    cookies.find(|cookie| cookie.name() == name).map(|cookie| cookie.value().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_for_this_host_and_for_no_script() {
        let set = SessionCookie { is_tls: true }.set("id").unwrap();
        let text = set.to_str().unwrap();
        assert!(text.starts_with("__Host-polynym_session="), "{text}");
        for part in ["HttpOnly", "SameSite=Strict", "Secure", "Path=/"] {
            assert!(text.contains(part), "{text}");
        }
        let mut headers = HeaderMap::new();
        let sent = format!("theme=dark; {NAME}=id");
        headers.insert(COOKIE, sent.parse().unwrap());
        let read = SessionCookie { is_tls: false }.read(&headers);
        assert_eq!(read.as_deref(), Some("id"));
        assert_eq!(SessionCookie { is_tls: true }.read(&headers), None);
    }

    #[test]
    fn a_sign_in_is_for_this_host_and_for_some_minutes() {
        let set = PendingCookie { slot: 3, is_tls: true }.set("sealed", 600).unwrap();
        let text = set.to_str().unwrap();
        assert!(text.starts_with("__Host-polynym_sign_in_3=sealed"), "{text}");
        for part in ["HttpOnly", "SameSite=Lax", "Secure", "Path=/", "Max-Age=600"] {
            assert!(text.contains(part), "{text}");
        }
    }
}

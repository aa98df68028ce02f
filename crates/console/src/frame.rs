//! The frame around every page: navigation, the search box, and the foot.

use std::sync::Arc;

use polynym_access::{Caller, Role};
use url::form_urlencoded::Serializer;

use crate::context::{self, Context};
use crate::session::{Message, Messages, Session};
use crate::words::language::CHOICES;

/// The frame around a page.
pub struct Frame {
    context: Context,
    caller: Option<Arc<Caller>>,
    /// What was done, for the pages that say so.
    messages: Option<Arc<Messages>>,
    /// Whether somebody signed in by a token, or as a person.
    can_sign_out: bool,
    /// The message of this page, if the page has read it.
    message: Option<Message>,
    /// The tenant of the page; empty if it has none.
    pub tenant: String,
}

/// A link of the navigation.
pub struct Link {
    /// The text.
    pub text: &'static str,
    /// The address.
    pub href: String,
    /// Whether it leads to this page.
    pub is_current: bool,
    /// The key after `g` that opens it.
    pub key: &'static str,
    /// Whether it is about the server, not about the tenant.
    pub is_of_server: bool,
}

/// The pages of a tenant: the text, the path, the key, and the least role.
const TENANT_PAGES: [(&str, &str, &str, Role); 9] = [
    ("Search", "", "u", Role::Resolver),
    ("Duplicates", "duplicates", "d", Role::Admin),
    ("Import", "import", "i", Role::Admin),
    ("Bulk changes", "bulk", "b", Role::Viewer),
    ("Audit", "audit", "a", Role::Viewer),
    ("Events", "events", "e", Role::Viewer),
    ("Deliveries", "deliveries", "l", Role::Admin),
    ("Usage", "usage", "s", Role::Admin),
    ("Policies", "policies", "p", Role::Viewer),
];
/// The pages of the server.
const SERVER_PAGES: [(&str, &str, &str, Role); 3] = [
    ("Tenants", "tenants", "t", Role::Viewer),
    ("Callers", "callers", "c", Role::Admin),
    ("Health", "health", "h", Role::Viewer),
];

impl Frame {
    /// The frame of a page.
    pub fn new(context: Context, caller: Option<&Arc<Caller>>, tenant: &str) -> Self {
        let (caller, tenant) = (caller.cloned(), tenant.to_owned());
        Self { context, caller, messages: None, can_sign_out: false, message: None, tenant }
    }

    /// The frame in a session: it has messages, and one that somebody began can be ended.
    pub fn in_session(self, session: &Session) -> Self {
        let messages = Some(session.messages.clone());
        Self { messages, can_sign_out: session.has_credentials(), ..self }
    }

    /// Whether there is a sign-in that can be ended.
    pub const fn can_sign_out(&self) -> bool {
        self.can_sign_out
    }

    /// The frame with a message that its page has taken from the session.
    pub fn with_message(self, message: Option<Message>) -> Self {
        Self { message, ..self }
    }

    /// What was done before the page was opened: a message is shown once.
    pub fn message(&self) -> Option<Message> {
        let kept = || self.messages.as_ref()?.take(self.path());
        self.message.clone().or_else(kept)
    }

    /// The path of the console.
    pub fn base(&self) -> &str {
        &self.context.base
    }

    /// The tenant whose pages the menu has.
    pub fn shown_tenant(&self) -> &str {
        if self.tenant.is_empty() { "default" } else { &self.tenant }
    }

    /// The path of the tenant's pages. A tenant's name has no character to be escaped.
    pub fn home(&self) -> String {
        format!("{}/t/{}", self.context.base, self.shown_tenant())
    }

    /// The address of a page of the server, with query parameters and the tenant to return to.
    pub fn server_page(&self, page: &str, fields: &[(&str, &str)]) -> String {
        let tenant = ("t", &*self.tenant);
        let given = fields.iter().copied().chain([tenant]).filter(|(_, value)| !value.is_empty());
        let query = Serializer::new(String::new()).extend_pairs(given).finish();
        let separator = if query.is_empty() { "" } else { "?" };
        format!("{}/{page}{separator}{query}", self.base())
    }

    /// The address of a page of callers, with the tenant to return to.
    pub fn callers_page(&self, page: &str) -> String {
        self.server_page(page, &[])
    }

    /// The path of this page.
    pub fn path(&self) -> &str {
        &self.context.path
    }

    /// The path of the page with its query, for returning after signing in.
    pub fn address(&self) -> String {
        match &*self.context.query {
            "" => self.context.path.clone(),
            query => format!("{}?{query}", self.context.path),
        }
    }

    /// The value that marks scripts and styles.
    pub fn nonce(&self) -> &str {
        &self.context.nonce
    }

    /// `light` or `dark`; empty for that of the system.
    pub fn theme(&self) -> &str {
        &self.context.theme
    }

    /// The code of the language (BCP 47).
    pub const fn language(&self) -> &'static str {
        self.context.language.code()
    }

    /// The languages to choose from: their codes and names.
    pub const fn languages(&self) -> [(&'static str, &'static str); 2] {
        CHOICES
    }

    /// The zone of times; empty for that of the browser.
    pub fn zone(&self) -> &str {
        &self.context.zone
    }

    /// Whether single keys are shortcuts.
    pub const fn has_keys(&self) -> bool {
        self.context.has_keys
    }

    /// Whether the zone was chosen by its name.
    pub fn has_named_zone(&self) -> bool {
        !matches!(self.zone(), "" | "UTC")
    }

    /// The id of the request in traces and logs.
    pub fn trace(&self) -> &str {
        &self.context.trace
    }

    /// The country of numbers in national form.
    pub fn region(&self) -> &str {
        &self.context.region
    }

    /// Whether somebody is signed in.
    pub const fn is_signed_in(&self) -> bool {
        self.caller.is_some()
    }

    /// The name of the caller.
    pub fn caller(&self) -> &str {
        self.caller.as_ref().map_or("", |caller| &caller.name)
    }

    /// The role of the caller.
    pub fn role(&self) -> String {
        self.caller.as_ref().map(|caller| caller.role.to_string()).unwrap_or_default()
    }

    fn may(&self, role: Role) -> bool {
        self.caller.as_ref().is_some_and(|caller| caller.role >= role)
    }

    /// Whether the caller may read lists and histories.
    pub fn may_view(&self) -> bool {
        self.may(Role::Viewer)
    }

    /// Whether the caller may change users.
    pub fn may_change(&self) -> bool {
        self.may(Role::Registrar)
    }

    /// Whether the caller may administer the tenant.
    pub fn may_administer(&self) -> bool {
        self.may(Role::Admin)
    }

    /// Whether the caller may open a page of the server, as far as its tenants are concerned: the
    /// pages about the server itself are for callers of all tenants, or admins.
    fn may_open(&self, page: &str) -> bool {
        let is_of_all = self.caller.as_ref().is_some_and(|caller| caller.tenants.are_all());
        match page {
            "callers" => is_of_all,
            "health" => is_of_all || self.may_administer(),
            _ => true,
        }
    }

    /// The links to the pages that the caller may open.
    pub fn links(&self) -> Vec<Link> {
        let home = self.home();
        let tenant = TENANT_PAGES.iter().map(|page| (page, format!("{home}/{}", page.1)));
        let server = SERVER_PAGES.iter().filter(|page| self.may_open(page.1));
        let server = server.map(|page| (page, self.server_page(page.1, &[])));
        let all = tenant.chain(server).filter(|((.., role), _)| self.may(*role));
        all.map(|(&(text, path, key, _), href)| Link {
            text,
            is_current: if path.is_empty() {
                self.path() == format!("{home}/")
                    || self.path().starts_with(&format!("{home}/search"))
            } else {
                self.path().starts_with(href.split('?').next().unwrap_or(&href))
            },
            is_of_server: SERVER_PAGES.iter().any(|page| page.1 == path),
            href,
            key,
        })
        .collect()
    }

    /// The calls of the API that the page has made so far.
    pub fn calls(&self) -> u32 {
        context::calls()
    }

    /// The milliseconds that the page has taken so far.
    pub fn milliseconds(&self) -> u128 {
        self.context.began.elapsed().as_millis()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_of_the_menu_has_an_icon() {
        let css = include_str!("../assets/console.css");
        for (text, _, key, _) in TENANT_PAGES.iter().chain(&SERVER_PAGES) {
            assert!(css.contains(&format!("nav [data-key=\"{key}\"] {{ --icon")), "{text}");
        }
    }
}

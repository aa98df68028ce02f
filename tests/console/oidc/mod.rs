//! People sign in by a provider.

mod faults;
mod keycloak;
mod keys;
mod lies;
mod provider;
mod sessions;

use std::fs;

use http::header::LOCATION;
use http::{Request, Version};
use http_body_util::Full;
use testkit::http::HttpClient;

use self::keys::Key;
use self::provider::{CLIENT, SECRET, TestProvider};
use crate::browser::{Answer, Browser};
use crate::tokens::GuardedSite;

/// The path to which the form to sign in by the provider leads.
const BEGIN: &str = "/console/sign-in/provider";
/// What the groups may do.
const GRANTS: &str = "[[oidc.grant]]\ngroup = \"support\"\nrole = \"viewer\"\n\
    tenants = [\"default\"]\n\
    [[oidc.grant]]\ngroup = \"admins\"\nrole = \"admin\"\ntenants = [\"*\"]\n";

/// A server whose people sign in by a provider.
struct OidcSite {
    guarded: GuardedSite,
    provider: TestProvider,
}

impl OidcSite {
    /// Starts a server and a provider.
    async fn start() -> Self {
        Self::start_with(Key::p256("first"), "").await
    }

    /// Starts a server with these settings, and a provider with this key.
    async fn start_with(key: Key, settings: &str) -> Self {
        let provider = TestProvider::start(key).await;
        let text = table(&provider.url, settings, GRANTS);
        let guarded = GuardedSite::start_with_text(&[("adam", "admin", "*")], &text, &[]);
        Self { guarded, provider }
    }

    async fn browser(&self) -> Browser {
        self.guarded.site.browser().await
    }

    /// Changes the text of the credentials file. The server follows within seconds.
    fn edit(&self, from: &str, to: &str) {
        let before = fs::read_to_string(self.guarded.file()).unwrap();
        assert!(before.contains(from), "{before}");
        fs::write(self.guarded.file(), before.replace(from, to)).unwrap();
    }

    /// Opens a page, and begins to sign in for it. Returns what the server answers.
    async fn ask(&self, browser: &mut Browser, path: &str) -> Answer {
        let page = browser.get(path).await;
        page.assert_has(&["<h1>Sign in</h1>", ">Sign in with Example SSO</button>"]);
        browser.submit(&page, BEGIN, &[]).await
    }

    /// Opens a page, and begins to sign in for it. Returns the address at the provider.
    async fn begin(&self, browser: &mut Browser, path: &str) -> String {
        leads_to(&self.ask(browser, path).await)
    }

    /// Signs in at the provider. Returns the path to which it leads back.
    async fn at_provider(&self, address: &str) -> String {
        let path = address.strip_prefix(&self.provider.url).unwrap();
        let mut client = HttpClient::connect(&self.provider.url, Version::HTTP_11).await;
        let request = Request::get(path).body(Full::default()).unwrap();
        let response = client.send(request).await;
        let back = response.headers[LOCATION].to_str().unwrap();
        back.strip_prefix(&self.guarded.site.url).unwrap().to_owned()
    }

    /// Opens a page, signs in for it, and returns what the browser shows then.
    async fn sign_in(&self, browser: &mut Browser, path: &str) -> Answer {
        let address = self.begin(browser, path).await;
        let back = self.at_provider(&address).await;
        browser.get(&back).await
    }
}

/// The table of a provider in a credentials file.
fn table(issuer: &str, settings: &str, grants: &str) -> String {
    format!(
        "[oidc]\nissuer = \"{issuer}\"\nclient_id = \"{CLIENT}\"\nclient_secret = \"{SECRET}\"\n\
         name = \"Example SSO\"\n{settings}\n{grants}"
    )
}

/// The address to which a page leads.
fn leads_to(page: &Answer) -> String {
    let refresh = page.response.header("refresh");
    let address = refresh.strip_prefix("0; url=");
    address.unwrap_or_else(|| panic!("{}: {}", page.status, page.text)).to_owned()
}

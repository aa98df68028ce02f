//! People sign in by Keycloak, which is another's idea of the protocol.
//!
//! It needs Java and a folder of Keycloak, named by `KEYCLOAK`: docs/testing.md says whence.

use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use http::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION};
use http::{Method, Request, Version};
use http_body_util::Full;
use serde_json::{Value, json};
use testkit::http::{HttpClient, HttpResponse};
use url::form_urlencoded::Serializer;

use super::{BEGIN, CLIENT, GRANTS, SECRET, leads_to, table};
use crate::browser::{Answer, Browser, HOME};
use crate::tokens::GuardedSite;

/// The time in which Keycloak starts.
const START: Duration = Duration::from_secs(300);
const PASSWORD: &str = "correct horse";

/// A Keycloak whose realm `staff` has Ann, of the group `support`. It ends when it is dropped.
struct Keycloak {
    url: String,
    process: Child,
}

impl Keycloak {
    /// Starts it, with an administrator and nothing else.
    async fn start() -> Self {
        let folder = std::env::var("KEYCLOAK").expect("KEYCLOAK names the folder of Keycloak");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = Command::new(format!("{folder}/bin/kc.sh"))
            .args(["start-dev", "--db", "dev-mem", "--http-host", "127.0.0.1"])
            .args(["--http-port", &port.to_string()])
            .env("KC_BOOTSTRAP_ADMIN_USERNAME", "root")
            .env("KC_BOOTSTRAP_ADMIN_PASSWORD", PASSWORD)
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("KEYCLOAK has bin/kc.sh");
        let keycloak = Self { url: format!("http://127.0.0.1:{port}"), process };
        let began = Instant::now();
        while !keycloak.is_ready().await {
            assert!(began.elapsed() < START, "Keycloak does not start");
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        keycloak
    }

    async fn is_ready(&self) -> bool {
        let address = self.url.strip_prefix("http://").unwrap();
        if tokio::net::TcpStream::connect(address).await.is_err() {
            return false;
        }
        let path = "/realms/master/.well-known/openid-configuration";
        let request = Request::get(path).body(Full::default()).unwrap();
        self.client().await.send(request).await.status == 200
    }

    async fn client(&self) -> HttpClient {
        HttpClient::connect(&self.url, Version::HTTP_11).await
    }

    /// Makes a call as the administrator.
    async fn call(&self, method: Method, path: &str, body: &Value) -> HttpResponse {
        let fields = [
            ("grant_type", "password"),
            ("client_id", "admin-cli"),
            ("username", "root"),
            ("password", PASSWORD),
        ];
        let form = Serializer::new(String::new()).extend_pairs(fields).finish();
        let path_of_token = "/realms/master/protocol/openid-connect/token";
        let form_type = "application/x-www-form-urlencoded";
        let answer = self.client().await.post(path_of_token, form_type, &[], form).await;
        let token = answer.json()["access_token"].as_str().unwrap().to_owned();
        let request = Request::builder()
            .method(method)
            .uri(format!("/admin/realms{path}"))
            .header(AUTHORIZATION, format!("Bearer {token}"))
            .header(CONTENT_TYPE, "application/json")
            .body(Full::from(body.to_string()))
            .unwrap();
        let response = self.client().await.send(request).await;
        assert!(response.status < 300, "{path}: {} {:?}", response.status, response.body);
        response
    }

    /// Makes the realm, for a server at this address.
    async fn make_realm(&self, server: &str) {
        let groups =
            json!({ "claim.name": "groups", "full.path": "false", "id.token.claim": "true" });
        let realm = json!({
            "realm": "staff", "enabled": true, "sslRequired": "none",
            "groups": [{ "name": "support" }],
            "users": [{
                "username": "ann", "email": "ann@example.org", "emailVerified": true,
                "firstName": "Ann", "lastName": "Lee", "enabled": true, "groups": ["/support"],
                "credentials": [{ "type": "password", "value": PASSWORD, "temporary": false }],
            }],
            "clients": [{
                "clientId": CLIENT, "secret": SECRET,
                "redirectUris": [format!("{server}/console/*")],
                "attributes": { "post.logout.redirect.uris": "+" },
                "protocolMappers": [{
                    "name": "groups", "protocol": "openid-connect",
                    "protocolMapper": "oidc-group-membership-mapper", "config": groups,
                }],
            }],
        });
        self.call(Method::POST, "", &realm).await;
    }

    /// The id of what a list of the realm has first.
    async fn first_id(&self, list: &str) -> String {
        let all = self.call(Method::GET, &format!("/staff/{list}"), &Value::Null).await.json();
        all[0]["id"].as_str().unwrap().to_owned()
    }
}

impl Drop for Keycloak {
    fn drop(&mut self) {
        let group = format!("-{}", self.process.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.process.wait();
    }
}

/// A person, with a browser at each of the two sites.
struct Person<'a> {
    site: &'a GuardedSite,
    keycloak: &'a Keycloak,
    here: Browser,
    there: Browser,
}

impl Person<'_> {
    /// Begins to sign in. Returns what Keycloak answers.
    async fn begin(&mut self) -> Answer {
        let page = self.here.get(&format!("{HOME}/audit")).await;
        let address = leads_to(&self.here.submit(&page, BEGIN, &[]).await);
        self.there.get(address.strip_prefix(&self.keycloak.url).unwrap()).await
    }

    /// Fills in Keycloak's form. Returns the page to which that leads.
    async fn give_password(&mut self, form: &Answer) -> Answer {
        let action = form.attribute("action", &self.keycloak.url).replace("&amp;", "&");
        let path = action.strip_prefix(&self.keycloak.url).unwrap();
        let fields = [("username", "ann"), ("password", PASSWORD)];
        let left = self.there.post(path, &fields).await;
        self.come_back(&left).await
    }

    async fn come_back(&mut self, left: &Answer) -> Answer {
        let back = left.response.header(LOCATION.as_str());
        let path = back.strip_prefix(&self.site.site.url);
        let path = path.unwrap_or_else(|| panic!("{} {back}: {}", left.status, left.text));
        self.here.get(path).await
    }
}

#[tokio::test]
#[ignore = "it needs Keycloak"]
async fn long_people_sign_in_by_keycloak() {
    let keycloak = Keycloak::start().await;
    let text = table(&format!("{}/realms/staff", keycloak.url), "", GRANTS);
    let site = GuardedSite::start_with_text(&[("adam", "admin", "*")], &text, &[]);
    keycloak.make_realm(&site.site.url).await;
    let (here, there) = (site.site.browser().await, Browser::connect(&keycloak.url).await);
    let mut person = Person { site: &site, keycloak: &keycloak, here, there };

    let form = person.begin().await;
    person.give_password(&form).await.assert_has(&[
        "<h1>Audit",
        "oidc:ann@example.org",
        "Role: viewer",
    ]);

    // Keycloak signs by a new key. Its own session lasts: it asks for no password. Keys are read
    // again after five seconds at the earliest.
    tokio::time::sleep(Duration::from_secs(6)).await;
    let new_key = json!({
        "name": "newer", "providerId": "rsa-generated",
        "providerType": "org.keycloak.keys.KeyProvider", "config": { "priority": ["200"] },
    });
    keycloak.call(Method::POST, "/staff/components", &new_key).await;
    person.here = site.site.browser().await;
    let left = person.begin().await;
    person.come_back(&left).await.assert_has(&["<h1>Audit", "Role: viewer"]);

    // Signing out ends both sessions.
    let left = person.here.post("/console/sign-out", &[]).await;
    let address = leads_to(&left);
    let ended = person.there.get(address.strip_prefix(&keycloak.url).unwrap()).await;
    person.come_back(&ended).await.assert_has(&["<h1>Sign in</h1>"]);
    let form = person.begin().await;

    let (user, group) = (keycloak.first_id("users").await, keycloak.first_id("groups").await);
    let membership = format!("/staff/users/{user}/groups/{group}");
    keycloak.call(Method::DELETE, &membership, &Value::Null).await;
    let refused = person.give_password(&form).await;
    assert_eq!(refused.status, 403);
    refused.assert_has(&["none of your groups may use this console"]);
}

//! A provider of OpenID Connect on this machine, which knows one person, and lies if it is told to.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use url::form_urlencoded;

use super::keys::{Key, base64, hmac, sha256};

/// The name and the secret of the server at the provider.
pub const CLIENT: &str = "polynym";
pub const SECRET: &str = "a secret: of the server";

/// How the provider treats one of its paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    Silent,
    Huge,
    Broken,
    Redirecting,
    Garbled,
}

/// How an ID token is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signature {
    Honest,
    /// By no key.
    None,
    /// By HMAC with the public key as the secret.
    PublicKey,
    /// By HMAC with the secret of the server.
    ClientSecret,
    /// By a key of others, with the name of the provider's.
    OtherKey,
}

/// What the provider does.
pub struct Behaviour {
    /// Claims of the person, beside those of the protocol, or in their place.
    pub claims: Value,
    pub signature: Signature,
    pub mood: Option<(&'static str, Mood)>,
    /// What it says about itself, beside the truth, or in its place.
    pub metadata: Value,
    /// The keys: it signs by the last one.
    pub keys: Vec<Key>,
    /// Whether it answers a code without an ID token.
    pub has_no_token: bool,
}

/// A provider. It ends when it is dropped.
pub struct TestProvider {
    pub url: String,
    state: Arc<State>,
    task: JoinHandle<()>,
}

struct State {
    url: String,
    behaviour: Mutex<Behaviour>,
    /// What was asked for, by the code.
    codes: Mutex<HashMap<String, HashMap<String, String>>>,
    paths: Mutex<Vec<String>>,
}

impl TestProvider {
    /// Starts a provider with this key.
    pub async fn start(key: Key) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let behaviour = Behaviour {
            claims: json!({
                "sub": "248289761001", "email": "ann@example.org", "email_verified": true,
                "preferred_username": "ann", "groups": ["support"],
            }),
            signature: Signature::Honest,
            mood: None,
            metadata: json!({}),
            keys: vec![key],
            has_no_token: false,
        };
        let (codes, paths) = (Mutex::default(), Mutex::default());
        let behaviour = Mutex::new(behaviour);
        let state = Arc::new(State { url: url.clone(), behaviour, codes, paths });
        let shared = state.clone();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let shared = shared.clone();
                let service = service_fn(move |request| respond(shared.clone(), request));
                let served = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
                tokio::spawn(served);
            }
        });
        Self { url, state, task }
    }

    /// Changes what it does.
    pub fn change(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.state.behaviour.lock().unwrap());
    }

    /// Sets claims of the person.
    pub fn set(&self, claims: Value) {
        self.change(|behaviour| merge(&mut behaviour.claims, &claims));
    }

    /// Stops listening.
    pub fn stop(&self) {
        self.task.abort();
    }

    /// How often a path was asked for.
    pub fn count(&self, path: &str) -> usize {
        self.state.paths.lock().unwrap().iter().filter(|known| *known == path).count()
    }
}

impl Drop for TestProvider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Adds the fields of an object to another; those without a value are removed.
fn merge(object: &mut Value, other: &Value) {
    let object = object.as_object_mut().unwrap();
    for (name, value) in other.as_object().unwrap() {
        object.remove(name);
        if !value.is_null() {
            object.insert(name.clone(), value.clone());
        }
    }
}

async fn respond(
    state: Arc<State>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    state.paths.lock().unwrap().push(path.clone());
    let mood = state.behaviour.lock().unwrap().mood;
    match mood.filter(|(moody, _)| *moody == path).map(|(_, mood)| mood) {
        Some(Mood::Silent) => std::future::pending::<()>().await,
        Some(Mood::Huge) => return Ok(json_of(200, &json!({"a": "a".repeat(9 << 20)}))),
        Some(Mood::Broken) => return Ok(json_of(500, &json!({}))),
        Some(Mood::Redirecting) => return Ok(redirect(&format!("{}/other", state.url))),
        Some(Mood::Garbled) => return Ok(json_of(200, &json!({"keys": 1, "issuer": 1}))),
        None => {}
    }
    let query = request.uri().query().unwrap_or_default();
    let query: HashMap<String, String> =
        form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    Ok(match path.as_str() {
        "/.well-known/openid-configuration" => json_of(200, &state.metadata()),
        "/keys" => json_of(200, &json!({ "keys": state.keys() })),
        "/authorize" => state.authorize(query),
        "/token" => {
            let header = request.headers().get(AUTHORIZATION).cloned();
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let fields: HashMap<_, _> = form_urlencoded::parse(&body).into_owned().collect();
            let is_client = header.is_some_and(|header| {
                let encode = |text: &str| {
                    form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>()
                };
                let pair = format!("{}:{}", encode(CLIENT), encode(SECRET));
                let expected =
                    base64::Engine::encode(&base64::engine::general_purpose::STANDARD, pair);
                header == format!("Basic {expected}")
            });
            if is_client { state.token(&fields) } else { refused("invalid_client") }
        }
        _ => json_of(404, &json!({})),
    })
}

impl State {
    fn metadata(&self) -> Value {
        let url = |path: &str| format!("{}{path}", self.url);
        let mut metadata = json!({
            "issuer": self.url,
            "authorization_endpoint": url("/authorize"),
            "token_endpoint": url("/token"),
            "jwks_uri": url("/keys"),
            "end_session_endpoint": url("/end"),
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256", "ES256"],
        });
        merge(&mut metadata, &self.behaviour.lock().unwrap().metadata);
        metadata
    }

    fn keys(&self) -> Vec<Value> {
        self.behaviour.lock().unwrap().keys.iter().map(Key::public).collect()
    }

    /// Leads back with a code, as if the person had signed in.
    fn authorize(&self, query: HashMap<String, String>) -> Response<Full<Bytes>> {
        for (name, expected) in [
            ("client_id", CLIENT),
            ("response_type", "code"),
            ("code_challenge_method", "S256"),
            ("scope", "openid email profile"),
        ] {
            assert_eq!(query[name], expected, "{name}");
        }
        assert!(query["state"].len() > 20 && query["nonce"].len() > 20);
        let code = base64(sha256(&query["state"]));
        let answer = form_urlencoded::Serializer::new(String::new())
            .append_pair("code", &code)
            .append_pair("state", &query["state"])
            .append_pair("iss", &self.url)
            .finish();
        let back = format!("{}?{answer}", query["redirect_uri"]);
        self.codes.lock().unwrap().insert(code, query);
        redirect(&back)
    }

    /// Answers a code, once.
    fn token(&self, fields: &HashMap<String, String>) -> Response<Full<Bytes>> {
        let Some(asked) = self.codes.lock().unwrap().remove(&fields["code"]) else {
            return refused("invalid_grant");
        };
        assert_eq!(fields["grant_type"], "authorization_code");
        assert_eq!(fields["redirect_uri"], asked["redirect_uri"]);
        assert_eq!(base64(sha256(&fields["code_verifier"])), asked["code_challenge"]);
        let mut answer = json!({ "access_token": "none", "token_type": "Bearer" });
        if !self.behaviour.lock().unwrap().has_no_token {
            answer["id_token"] = self.id_token(&asked["nonce"]).into();
        }
        json_of(200, &answer)
    }

    fn id_token(&self, nonce: &str) -> String {
        let behaviour = self.behaviour.lock().unwrap();
        let key = behaviour.keys.last().unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let mut claims = json!({
            "iss": self.url, "aud": CLIENT, "iat": now.as_secs(),
            "exp": (now + Duration::from_secs(300)).as_secs(), "nonce": nonce,
        });
        merge(&mut claims, &behaviour.claims);
        let algorithm = match behaviour.signature {
            Signature::Honest | Signature::OtherKey => key.algorithm(),
            Signature::None => "none",
            Signature::PublicKey | Signature::ClientSecret => "HS256",
        };
        let header = json!({ "alg": algorithm, "typ": "JWT", "kid": key.id });
        let text = format!("{}.{}", base64(header.to_string()), base64(claims.to_string()));
        let signature = match behaviour.signature {
            Signature::Honest => key.sign(text.as_bytes()),
            Signature::None => Vec::new(),
            Signature::PublicKey => hmac(key.public().to_string().as_bytes(), text.as_bytes()),
            Signature::ClientSecret => hmac(SECRET.as_bytes(), text.as_bytes()),
            Signature::OtherKey => Key::p256(&key.id).sign(text.as_bytes()),
        };
        format!("{text}.{}", base64(signature))
    }
}

fn json_of(status: u16, value: &Value) -> Response<Full<Bytes>> {
    let response = Response::builder().status(status).header(CONTENT_TYPE, "application/json");
    response.body(Full::from(value.to_string())).unwrap()
}

fn refused(error: &str) -> Response<Full<Bytes>> {
    json_of(400, &json!({ "error": error }))
}

fn redirect(address: &str) -> Response<Full<Bytes>> {
    let response = Response::builder().status(StatusCode::FOUND).header(LOCATION, address);
    response.body(Full::default()).unwrap()
}

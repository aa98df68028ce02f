//! A provider: what it says about itself, which is read when it is needed, and the two ends of a
//! sign-in.

use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use openidconnect::core::{CoreAuthPrompt, CoreClientAuthMethod, CoreResponseType};
use openidconnect::{
    AuthType, AuthUrl, AuthenticationFlow, AuthorizationCode, ClientId, CsrfToken, DiscoveryError,
    IssuerUrl, Nonce, PkceCodeChallenge, PkceCodeVerifier, ProviderMetadataWithLogout, RedirectUrl,
    Scope, TokenResponse, TokenUrl,
};
use polynym_access::{ClientSecret, IdentityProvider, is_safe_url};
use secrecy::ExposeSecret;
use tokio::sync::{Mutex, Semaphore, SemaphorePermit};
use tokio::task::spawn_blocking;
use url::Url;

use crate::claims::{EndSession, Identity};
use crate::exchange::{Claims, Distrust, SignInClient, Token, as_object, checked, refusal};
use crate::fault::Fault;
use crate::http_client::{HttpClient, is_local};
use crate::pending::{PENDING_TIME, Pending, seconds};

/// The age at which what the provider says about itself is read again.
const MAX_AGE: Duration = Duration::from_secs(60 * 60);
/// The least time between two such reads, even if a key is unknown or the provider is gone.
const READ_INTERVAL: Duration = Duration::from_secs(5);
/// The sign-ins that may wait for the provider at a time.
const MAX_WAITING: usize = 16;
/// The maximum bytes of a secret in a file.
const MAX_SECRET_BYTES: u64 = 4 << 10;

/// A provider.
pub struct Provider {
    issuer: String,
    http: HttpClient,
    known: Mutex<Known>,
    waiting: Semaphore,
}

/// What is known of the provider.
#[derive(Default)]
struct Known {
    metadata: Option<Arc<ProviderMetadataWithLogout>>,
    /// When it was read.
    read: Option<Instant>,
    /// The last attempt to read it, and its failure.
    tried: Option<(Instant, Option<Fault>)>,
}

/// Where browsers are led.
pub struct Redirect {
    /// The address at the provider.
    pub url: Url,
    /// What must come back.
    pub pending: Pending,
}

impl Provider {
    /// The provider with this name, of which nothing is known yet.
    pub fn new(issuer: &str) -> Self {
        let http = HttpClient { is_local: is_local(issuer) };
        let (known, waiting) = (Mutex::default(), Semaphore::new(MAX_WAITING));
        Self { issuer: issuer.to_owned(), http, known, waiting }
    }

    /// The name of the provider.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Begins a sign-in that comes back to `back`, with a state that begins with `slot`, and leads
    /// to `next`.
    ///
    /// # Errors
    /// The provider says nothing about itself that can be used, or too many wait for it.
    pub async fn begin(
        &self,
        settings: &IdentityProvider,
        back: &str,
        slot: usize,
        next: String,
    ) -> Result<Redirect, Fault> {
        let _permit = self.permit()?;
        let metadata = self.metadata(MAX_AGE).await?;
        let client = client(settings, &metadata, back, None)?;
        let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
        let state = CsrfToken::new(format!("{slot}.{}", CsrfToken::new_random().secret()));
        let mut request = client
            .authorize_url(
                AuthenticationFlow::<CoreResponseType>::AuthorizationCode,
                move || state,
                Nonce::new_random,
            )
            .add_scopes(settings.scopes.iter().cloned().map(Scope::new))
            .set_pkce_challenge(challenge);
        if let Some(prompt) = &settings.prompt {
            request = request.add_prompt(match prompt.as_str() {
                "consent" => CoreAuthPrompt::Consent,
                "select_account" => CoreAuthPrompt::SelectAccount,
                _ => CoreAuthPrompt::Login,
            });
        }
        let (url, state, nonce) = request.url();
        let pending = Pending {
            state: state.secret().clone(),
            nonce: nonce.secret().clone(),
            verifier: verifier.into_secret(),
            issuer: self.issuer.clone(),
            expires: seconds(SystemTime::now() + PENDING_TIME),
            next,
            kept: String::new(),
        };
        Ok(Redirect { url, pending })
    }

    /// Ends a sign-in by the code that came back.
    ///
    /// # Errors
    /// The provider does not say who it is, or what it says does not count.
    pub async fn finish(
        &self,
        settings: &IdentityProvider,
        back: &str,
        pending: &Pending,
        code: String,
    ) -> Result<Identity, Fault> {
        let _permit = self.permit()?;
        if pending.issuer != self.issuer {
            return Err(Fault::OtherIssuer);
        }
        let metadata = self.metadata(MAX_AGE).await?;
        let client = client(settings, &metadata, back, secret(&settings.secret).await?)?;
        let request = client
            .exchange_code(AuthorizationCode::new(code))
            .set_pkce_verifier(PkceCodeVerifier::new(pending.verifier.clone()));
        let answer = request.request_async(&self.http).await.map_err(refusal)?;
        let token = answer.id_token().ok_or(Fault::Malformed("there is no ID token"))?;
        let known = (&*self.issuer, &*settings.client_id, metadata.jwks().clone());
        let claims = match checked(token, known, &pending.nonce) {
            Ok(claims) => claims,
            Err(Distrust::Fault(fault)) => return Err(fault),
            Err(Distrust::UnknownKey) => self.checked_by_newer(settings, token, pending).await?,
        };
        let expires = SystemTime::from(claims.expiration());
        let end = metadata.additional_metadata().end_session_endpoint.clone();
        let end = end.filter(|end| self.is_usable(end.url()));
        let end = end.map(|end| EndSession::new(end, &settings.client_id, token));
        Identity::of(&as_object(claims)?, &settings.claims, expires, end)
    }

    /// Checks a token by the keys that the provider has now.
    async fn checked_by_newer<'t>(
        &self,
        settings: &IdentityProvider,
        token: &'t Token,
        pending: &Pending,
    ) -> Result<&'t Claims, Fault> {
        let metadata = self.metadata(READ_INTERVAL).await?;
        let known = (&*self.issuer, &*settings.client_id, metadata.jwks().clone());
        checked(token, known, &pending.nonce).map_err(|distrust| match distrust {
            Distrust::Fault(fault) => fault,
            Distrust::UnknownKey => Fault::Untrusted("no key of the provider has signed it"),
        })
    }

    fn permit(&self) -> Result<SemaphorePermit<'_>, Fault> {
        self.waiting.try_acquire().map_err(|_| Fault::Busy)
    }

    /// What the provider says about itself, read again if it is older than this. One reads at a
    /// time; what was read stays in use if it cannot be read again.
    async fn metadata(&self, max_age: Duration) -> Result<Arc<ProviderMetadataWithLogout>, Fault> {
        let mut known = self.known.lock().await;
        let is_fresh = known.read.is_some_and(|read| read.elapsed() < max_age);
        let was_tried = matches!(&known.tried, Some((tried, _)) if tried.elapsed() < READ_INTERVAL);
        if !is_fresh && !was_tried {
            let outcome = self.discover().await;
            let now = Instant::now();
            known.tried = Some((now, outcome.as_ref().err().cloned()));
            if let Ok(metadata) = outcome {
                (known.metadata, known.read) = (Some(Arc::new(metadata)), Some(now));
            }
        }
        let fault = known.tried.as_ref().and_then(|(_, fault)| fault.clone());
        known.metadata.clone().ok_or_else(|| fault.unwrap_or(Fault::Silent))
    }

    async fn discover(&self) -> Result<ProviderMetadataWithLogout, Fault> {
        let issuer = IssuerUrl::new(self.issuer.clone()).map_err(|_| Fault::OtherIssuer)?;
        let read = ProviderMetadataWithLogout::discover_async(issuer, &self.http).await;
        let metadata = read.map_err(|error| match error {
            DiscoveryError::Request(fault) => fault,
            DiscoveryError::Response(status, ..) if status.as_u16() != 200 => {
                Fault::Status(status.as_u16())
            }
            DiscoveryError::Response(..) => {
                Fault::Malformed("what it says about itself is no JSON")
            }
            DiscoveryError::Validation(_) => Fault::OtherIssuer,
            _ => Fault::Malformed("what it says about itself"),
        })?;
        let token =
            metadata.token_endpoint().ok_or(Fault::Malformed("it has no token endpoint"))?;
        let all = [metadata.authorization_endpoint().url(), token.url()];
        if all.iter().all(|url| self.is_usable(url)) { Ok(metadata) } else { Err(Fault::Insecure) }
    }

    fn is_usable(&self, url: &Url) -> bool {
        is_safe_url(url) && (url.scheme() == "https" || self.http.is_local)
    }
}

/// A client with these settings.
fn client(
    settings: &IdentityProvider,
    metadata: &ProviderMetadataWithLogout,
    back: &str,
    secret: Option<String>,
) -> Result<SignInClient, Fault> {
    let token = metadata.token_endpoint().ok_or(Fault::Malformed("it has no token endpoint"))?;
    let back = RedirectUrl::new(back.to_owned());
    let back = back.map_err(|_| Fault::Malformed("the address to come back to"))?;
    let issuer = metadata.issuer().clone();
    let id = ClientId::new(settings.client_id.clone());
    let methods = metadata.token_endpoint_auth_methods_supported();
    let takes_headers =
        methods.is_none_or(|all| all.contains(&CoreClientAuthMethod::ClientSecretBasic));
    let auth_type = if takes_headers { AuthType::BasicAuth } else { AuthType::RequestBody };
    let authorization: AuthUrl = metadata.authorization_endpoint().clone();
    let token: TokenUrl = token.clone();
    let client = openidconnect::Client::new(id, issuer, metadata.jwks().clone())
        .set_auth_uri(authorization)
        .set_token_uri(token)
        .set_redirect_uri(back)
        .set_auth_type(auth_type);
    Ok(match secret {
        Some(secret) => client.set_client_secret(openidconnect::ClientSecret::new(secret)),
        None => client,
    })
}

/// The secret of this server, if it has one.
async fn secret(secret: &ClientSecret) -> Result<Option<String>, Fault> {
    let path = match secret {
        ClientSecret::None => return Ok(None),
        ClientSecret::Text(text) => return Ok(Some(text.expose_secret().to_owned())),
        ClientSecret::File(path) => path.clone(),
    };
    let read = spawn_blocking(move || {
        let mut text = String::new();
        std::fs::File::open(path)?.take(MAX_SECRET_BYTES).read_to_string(&mut text)?;
        std::io::Result::Ok(text.trim().to_owned())
    });
    let text = read.await.ok().and_then(Result::ok).filter(|text| !text.is_empty());
    text.map(Some).ok_or(Fault::SecretUnreadable)
}

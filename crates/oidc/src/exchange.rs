//! The exchange of a code for an ID token, and the checks of the token.

use openidconnect::core::{
    CoreAuthDisplay, CoreAuthPrompt, CoreErrorResponseType, CoreGenderClaim, CoreJsonWebKey,
    CoreJweContentEncryptionAlgorithm, CoreJwsSigningAlgorithm, CoreRevocableToken,
    CoreRevocationErrorResponse, CoreTokenIntrospectionResponse, CoreTokenType,
};
use openidconnect::{
    AdditionalClaims, ClaimsVerificationError, Client, ClientId, EmptyExtraTokenFields,
    EndpointNotSet, EndpointSet, IdToken, IdTokenClaims, IdTokenFields, IdTokenVerifier, IssuerUrl,
    JsonWebKeySet, Nonce, RequestTokenError, SignatureVerificationError, StandardErrorResponse,
    StandardTokenResponse,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::fault::Fault;

/// The claims that the protocol does not name.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct OtherClaims {
    #[serde(flatten)]
    all: Map<String, Value>,
}

impl AdditionalClaims for OtherClaims {}

/// An ID token.
pub type Token = IdToken<
    OtherClaims,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJwsSigningAlgorithm,
>;
/// The claims of an ID token.
pub type Claims = IdTokenClaims<OtherClaims, CoreGenderClaim>;
type Fields = IdTokenFields<
    OtherClaims,
    EmptyExtraTokenFields,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJwsSigningAlgorithm,
>;
type TokenError = StandardErrorResponse<CoreErrorResponseType>;
/// A client that signs people in.
pub type SignInClient = Client<
    OtherClaims,
    CoreAuthDisplay,
    CoreGenderClaim,
    CoreJweContentEncryptionAlgorithm,
    CoreJsonWebKey,
    CoreAuthPrompt,
    TokenError,
    StandardTokenResponse<Fields, CoreTokenType>,
    CoreTokenIntrospectionResponse,
    CoreRevocableToken,
    CoreRevocationErrorResponse,
    EndpointSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointNotSet,
    EndpointSet,
    EndpointNotSet,
>;
/// The keys of a provider.
pub type Keys = JsonWebKeySet<CoreJsonWebKey>;

/// The signatures that count: by a key of which the provider alone has the secret half.
const ALGORITHMS: [CoreJwsSigningAlgorithm; 9] = [
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha256,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha384,
    CoreJwsSigningAlgorithm::RsaSsaPkcs1V15Sha512,
    CoreJwsSigningAlgorithm::RsaSsaPssSha256,
    CoreJwsSigningAlgorithm::RsaSsaPssSha384,
    CoreJwsSigningAlgorithm::RsaSsaPssSha512,
    CoreJwsSigningAlgorithm::EcdsaP256Sha256,
    CoreJwsSigningAlgorithm::EcdsaP384Sha384,
    CoreJwsSigningAlgorithm::EdDsa,
];

/// The claims of a token that does not count.
#[derive(Debug)]
pub enum Distrust {
    /// No key that is known fits: newer keys may.
    UnknownKey,
    /// Another reason.
    Fault(Fault),
}

/// Checks a token as the protocol says (OpenID Connect Core, section 3.1.3.7), and that it was made
/// for this server alone. Returns its claims.
pub fn checked<'t>(
    token: &'t Token,
    (issuer, client_id, keys): (&str, &str, Keys),
    nonce: &str,
) -> Result<&'t Claims, Distrust> {
    let untrusted = |why| Distrust::Fault(Fault::Untrusted(why));
    let issuer = IssuerUrl::new(issuer.to_owned()).map_err(|_| untrusted("its issuer"))?;
    let client = ClientId::new(client_id.to_owned());
    let verifier = IdTokenVerifier::new_public_client(client.clone(), issuer, keys)
        .set_allowed_algs(ALGORITHMS);
    let claims = token.claims(&verifier, &Nonce::new(nonce.to_owned())).map_err(distrust)?;
    // The library leaves this claim to programs. A token that another program asked for, even if
    // for this one, too, is none of a person who signs in here.
    if claims.authorized_party().is_some_and(|party| *party != client) {
        return Err(untrusted("another program asked for it"));
    }
    Ok(claims)
}

fn distrust(error: ClaimsVerificationError) -> Distrust {
    use SignatureVerificationError::{AmbiguousKeyId, CryptoError, NoMatchingKey};
    let why = match error {
        ClaimsVerificationError::SignatureVerification(
            NoMatchingKey | CryptoError(_) | AmbiguousKeyId(_),
        ) => return Distrust::UnknownKey,
        ClaimsVerificationError::SignatureVerification(_) => "it is not signed as it must be",
        ClaimsVerificationError::Expired(_) => "it has expired",
        ClaimsVerificationError::InvalidAudience(_) => "it is for another program",
        ClaimsVerificationError::InvalidIssuer(_) => "another issuer made it",
        ClaimsVerificationError::InvalidNonce(_) => "it answers another sign-in",
        _ => "it has another form",
    };
    Distrust::Fault(Fault::Untrusted(why))
}

/// The claims as an object of JSON.
pub fn as_object(claims: &Claims) -> Result<Map<String, Value>, Fault> {
    match serde_json::to_value(claims) {
        Ok(Value::Object(object)) => Ok(object),
        _ => Err(Fault::Malformed("the claims")),
    }
}

/// The reason why no token came.
pub fn refusal(error: RequestTokenError<Fault, TokenError>) -> Fault {
    match error {
        RequestTokenError::Request(fault) => fault,
        RequestTokenError::Parse(..) => Fault::Malformed("the answer to the code"),
        RequestTokenError::ServerResponse(answer) => match answer.error() {
            CoreErrorResponseType::InvalidGrant => Fault::CodeRefused,
            CoreErrorResponseType::InvalidClient | CoreErrorResponseType::UnauthorizedClient => {
                Fault::ClientRefused
            }
            _ => Fault::Malformed("the error of the provider to the code"),
        },
        RequestTokenError::Other(_) => Fault::Malformed("the answer to the code has no body"),
    }
}

//! The reasons why nobody is signed in.

/// The reason why a provider signs nobody in. Its text is for the log, and has nothing about a
/// person in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No connection is made.
    #[error("the provider cannot be reached: {0}")]
    Unreachable(String),
    /// A connection is made, and no answer comes.
    #[error("the provider does not answer in time")]
    Silent,
    /// An answer has more bytes than it may.
    #[error("an answer of the provider is too large")]
    TooLarge,
    /// An answer is not what the protocol says.
    #[error("an answer of the provider is malformed: {0}")]
    Malformed(&'static str),
    /// An answer has another status.
    #[error("the provider answers with the status {0}")]
    Status(u16),
    /// It names an address that is not protected.
    #[error("the provider names an address without TLS")]
    Insecure,
    /// It has another name for itself.
    #[error("the provider calls itself by another name than the issuer of the credentials file")]
    OtherIssuer,
    /// It does not know this server, or its secret.
    #[error("the provider does not accept client_id and secret of the credentials file")]
    ClientRefused,
    /// It does not accept the code.
    #[error("the provider does not accept the code: it was used, is too old, or is not its own")]
    CodeRefused,
    /// Its statement about the person cannot be trusted.
    #[error("the ID token does not count: {0}")]
    Untrusted(&'static str),
    /// The statement lacks a name that can be used.
    #[error("the ID token has no usable claim for the name of the person")]
    NoName,
    /// The person's email address is not verified.
    #[error("the provider has not verified the person's email address")]
    EmailUnverified,
    /// The file of the secret cannot be read.
    #[error("the file of the secret cannot be read")]
    SecretUnreadable,
    /// Too many people wait for the provider.
    #[error("too many sign-ins wait for the provider")]
    Busy,
    /// The system has no random bytes.
    #[error("the system has no random bytes")]
    NoRandomBytes,
}

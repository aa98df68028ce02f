//! Texts for the driver's errors.

use mongodb::error::{CommandError, Error as DriverError, ErrorKind, WriteFailure};

/// Unauthorized.
pub const NOT_ALLOWED: i32 = 13;
/// The text for a connection that the server closed because it refused the credentials.
pub const REFUSED: &str = "AuthenticationFailed";

/// Describes an error without keys and documents.
pub fn text(error: &DriverError) -> String {
    match &*error.kind {
        ErrorKind::Command(error) => {
            refusal(error).unwrap_or_else(|| format!("{} ({})", error.code_name, error.code))
        }
        ErrorKind::Write(WriteFailure::WriteError(error)) => {
            format!("a write failed with code {}", error.code)
        }
        ErrorKind::Write(WriteFailure::WriteConcernError(error)) => {
            format!("{} ({})", error.code_name, error.code)
        }
        ErrorKind::InsertMany(error) => {
            let codes: Vec<_> =
                error.write_errors.iter().flatten().map(|error| error.code.to_string()).collect();
            format!("an insert failed with code {}", codes.join(", "))
        }
        ErrorKind::Io(error) => error.to_string(),
        ErrorKind::ServerSelection { message, .. } => selection(message),
        // The driver prints the operation that cleared the pool with its documents.
        ErrorKind::ConnectionPoolCleared { message, .. } if message.contains("SCRAM failure") => {
            REFUSED.to_owned()
        }
        ErrorKind::ConnectionPoolCleared { .. } => "the connection was lost".to_owned(),
        ErrorKind::Authentication { message, .. }
        | ErrorKind::DnsResolve { message, .. }
        | ErrorKind::InvalidTlsConfig { message, .. }
        | ErrorKind::InvalidArgument { message, .. } => message.clone(),
        _ => "the driver failed".to_owned(),
    }
}

/// Explains in one sentence why no server was found: the driver dumps its state of each server.
fn selection(message: &str) -> String {
    let none = "no server accepts writes";
    if message.contains("RsGhost") {
        return format!("{none}: run rs.initiate() on one member of the replica set, once");
    }

    if message.contains("Set Name:") && !message.contains("Error:") {
        return format!(
            "{none}: replicaSet in the URI is not the name of the set, or the set has no \
             primary now"
        );
    }

    let kind = message.split_once("Kind: ").map_or("", |(_, kind)| kind);
    let cause = kind.split(", labels").next().unwrap_or_default();
    if cause.is_empty() { none.to_owned() } else { format!("{none} ({cause}){}", advice(cause)) }
}

/// Advice for a connection that could not be established.
fn advice(cause: &str) -> &'static str {
    if cause.contains("invalid peer certificate: certificate not valid for name") {
        "; the hosts in the URI and in the set's configuration must be names of the certificate"
    } else if cause.contains("invalid peer certificate") {
        "; tlsCAFile in the URI must name the file of the authority that signed the certificate"
    } else if cause.contains("unexpected end of file") {
        "; if the server requires TLS, add tls=true to the URI"
    } else if cause.contains("tls handshake eof") {
        "; if the server has no TLS, remove tls=true from the URI"
    } else {
        ""
    }
}

/// The privilege that the user lacks. The server's message repeats the whole command: only its name
/// and collection are taken from it.
fn refusal(error: &CommandError) -> Option<String> {
    if is_anonymous(error) {
        return Some("it requires credentials, and the URI has none".to_owned());
    }
    let (_, command) = error.message.split_once("to execute command { ")?;
    let (name, rest) = command.split_once(": ").filter(|_| error.code == NOT_ALLOWED)?;
    let collection = rest.strip_prefix('"').and_then(|rest| rest.split('"').next());
    let on = collection.map(|collection| format!(" on {collection}")).unwrap_or_default();
    Some(format!("the user lacks the privilege `{}`{on}", privilege(name)))
}

/// The action that a command needs.
fn privilege(command: &str) -> &str {
    match command {
        "aggregate" => "collStats",
        "create" => "createCollection",
        "createIndexes" => "createIndex",
        "delete" => "remove",
        "getMore" => "find",
        "update" => "update or insert",
        other => other,
    }
}

/// Whether a command was refused because the connection is not authenticated.
pub fn is_anonymous(error: &CommandError) -> bool {
    error.code == NOT_ALLOWED && error.message.contains("requires authentication")
}

#[cfg(test)]
mod tests {
    use mongodb::bson::doc;

    use super::*;

    fn error(message: &str) -> CommandError {
        let error = doc! { "code": NOT_ALLOWED, "codeName": "Unauthorized", "errmsg": message };
        mongodb::bson::deserialize_from_document(error).expect("a command's error")
    }

    #[test]
    fn a_refusal_names_the_privilege_and_no_key() {
        let text = |message| refusal(&error(message));
        let find = "not authorized on polynym to execute command { find: \"identities\", \
                    filter: { _id: \"default,email,joe@example.com\" } }";
        let expected = "the user lacks the privilege `find` on identities";
        assert_eq!(text(find).as_deref(), Some(expected));
        let list = "not authorized on polynym to execute command { listCollections: 1, lsid: { } }";
        let expected = "the user lacks the privilege `listCollections`";
        assert_eq!(text(list).as_deref(), Some(expected));
        let anonymous = text("Command find requires authentication");
        assert!(anonymous.is_some_and(|text| text.contains("credentials")));
        assert_eq!(text("Unauthorized"), None);
    }
}

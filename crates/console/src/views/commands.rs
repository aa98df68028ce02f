//! The calls that do what a page does: on the command line, by curl and by grpcurl.

use polynym_lines::json;
use prost::{Message, Name};

/// The maximum bytes of a call's message: each is shown twice.
const MAX_BODY: usize = 8 << 10;

/// The calls that do what a page does. Empty ones are left out.
#[derive(Clone, Debug, Default)]
pub struct Commands {
    /// The command of `polynym`.
    pub cli: String,
    /// The call by curl.
    pub curl: String,
    /// The call by grpcurl.
    pub grpcurl: String,
}

impl Commands {
    /// The calls of the method whose request this is. `cli` are the words after `polynym`; empty if
    /// no command does it. Without calls if the request is long.
    pub fn from_request<R: Message + Name>(cli: &[&str], request: &R) -> Self {
        // Every request of the API has a method.
        let Ok(method) = json::method::<R>() else { return Self::default() };
        Self::new(cli, &format!("{}/{}", method.parent_service().name(), method.name()), request)
    }

    /// The calls of a method, with its service before it, whose request has the fields of this one.
    pub fn new<R: Message + Name>(cli: &[&str], method: &str, request: &R) -> Self {
        let json = json::from_message(request).unwrap_or_default().to_string();
        let body = quoted(&json);
        if body.len() > MAX_BODY {
            return Self::default();
        }
        Self {
            cli: if cli.is_empty() { String::new() } else { line(cli) },
            curl: if json::method::<R>().is_ok_and(|method| method.is_server_streaming()) {
                streaming_curl(method, &json)
            } else {
                format!(
                    "curl -H 'content-type: application/json' \\\n  \
                     -H \"authorization: Bearer $TOKEN\" \\\n  \
                     -d {body} \\\n  \"$POLYNYM_HTTP/polynym.v1.{method}\""
                )
            },
            grpcurl: format!(
                "grpcurl -H \"authorization: Bearer $TOKEN\" \\\n  -d {body} \\\n  \
                 \"$POLYNYM_SERVER\" polynym.v1.{method}"
            ),
        }
    }
}

/// The call by curl of a method whose response is a stream: curl has to send the message after its
/// length (the envelope of Connect), and prints each response after its own.
fn streaming_curl(method: &str, json: &str) -> String {
    let length = u32::try_from(json.len()).unwrap_or(u32::MAX).to_be_bytes();
    let octal: String = length.iter().map(|byte| format!("\\{byte:03o}")).collect();
    format!(
        "{{ printf '\\000{octal}'; printf %s {}; }} | curl -N -o - \\\n  \
         -H 'content-type: application/connect+json' \\\n  \
         -H \"authorization: Bearer $TOKEN\" \\\n  \
         --data-binary @- \\\n  \"$POLYNYM_HTTP/polynym.v1.{method}\"",
        quoted(json)
    )
}

/// A command of `polynym`, from the words after it.
pub fn line(cli: &[&str]) -> String {
    let words: Vec<_> = cli.iter().map(|word| quoted(word)).collect();
    format!("polynym {}", words.join(" "))
}

/// A word for a shell, in single quotes if it needs them.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@+,=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use polynym_proto::v1::{GetUserRequest, UndoOperationRequest};

    #[test]
    fn words_are_safe_for_a_shell() {
        assert_eq!(quoted("email:joe@example.com"), "email:joe@example.com");
        assert_eq!(quoted("O'Neil; rm -rf /"), r"'O'\''Neil; rm -rf /'");
        let message = GetUserRequest { user_id: "1".to_owned(), ..Default::default() };
        let cli = ["user", "get", "1"];
        let commands = Commands::from_request(&cli, &message);
        assert_eq!(commands.cli, "polynym user get 1");
        assert!(commands.curl.contains(r#"-d '{"userId":"1"}'"#), "{}", commands.curl);
        let message =
            UndoOperationRequest { operation_id: "import-1".to_owned(), ..Default::default() };
        let commands = Commands::from_request(&cli, &message);
        let begin =
            r#"{ printf '\000\000\000\000\032'; printf %s '{"operationId":"import-1"}'; } |"#;
        assert!(commands.curl.starts_with(begin), "{}", commands.curl);
    }
}

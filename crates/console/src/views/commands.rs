//! The calls that do what a page does: on the command line, by curl and by grpcurl.

use prost::Message;

/// The maximum bytes of a call's message: each is shown twice.
const MAX_BODY: usize = 8 << 10;
/// The methods of the pages whose response is a stream.
const STREAMS: [&str; 3] = ["FindDuplicates", "UndoOperation", "Watch"];

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
    /// The calls of a method, with its service before it, and with its request. `cli` are the words
    /// after `polynym`; empty if no command does it. Without calls if the request is long.
    pub fn new(cli: &[&str], method: &str, request: &impl Message) -> Self {
        let (_, name) = method.split_once('/').unwrap_or_default();
        let json = polynym_lines::json::from_message(&format!("polynym.v1.{name}Request"), request);
        let json = json.unwrap_or_default().to_string();
        let body = quoted(&json);
        if body.len() > MAX_BODY {
            return Self::default();
        }
        Self {
            cli: if cli.is_empty() { String::new() } else { line(cli) },
            curl: if STREAMS.contains(&name) {
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
        let commands = Commands::new(&cli, "DirectoryService/GetUser", &message);
        assert_eq!(commands.cli, "polynym user get 1");
        assert!(commands.curl.contains(r#"-d '{"userId":"1"}'"#), "{}", commands.curl);
        let message =
            UndoOperationRequest { operation_id: "import-1".to_owned(), ..Default::default() };
        let commands = Commands::new(&cli, "AdminService/UndoOperation", &message);
        let begin =
            r#"{ printf '\000\000\000\000\032'; printf %s '{"operationId":"import-1"}'; } |"#;
        assert!(commands.curl.starts_with(begin), "{}", commands.curl);
    }
}

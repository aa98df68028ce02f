//! Compares a client's answers with the expected ones.

use prost_reflect::{DynamicMessage, MessageDescriptor};
use serde_json::Value;

use crate::Outcome;
use crate::api;
use crate::direct::DirectError;
use crate::scenario::ExpectedError;
use crate::value::Variables;

/// The message of an answer that must be one.
pub fn message(answer: &Value, descriptor: MessageDescriptor) -> Outcome<DynamicMessage> {
    match answer.get("ok") {
        Some(text) => api::decode(descriptor, text),
        None => Err(format!("the client says {answer}")),
    }
}

/// Whether the answer is this error.
pub fn error(answer: &Value, expected: &ExpectedError, variables: &mut Variables) -> Outcome<()> {
    let found = answer.get("error").ok_or_else(|| format!("no error but {answer}"))?;
    let text = |name: &str| found[name].as_str().unwrap_or_default();
    let filled = |text: &Option<String>| match text {
        Some(text) => variables.text(text),
        None => Ok(String::new()),
    };

    compare("type", text("type"), &expected.kind)?;
    compare("reason", text("reason"), expected.reason.as_deref().unwrap_or_default())?;
    compare("field", text("field"), &filled(&expected.field)?)?;
    compare("owner", text("owner"), &filled(&expected.owner)?)?;
    let delay = found["retry_after_ms"].as_f64().is_some_and(|delay| delay > 0.0);
    compare("delay", &delay.to_string(), &expected.retry_after.to_string())?;
    let request_id = text("request_id").to_owned();
    if let Some(name) = &expected.save_request_id {
        uuid::Uuid::try_parse(&request_id).map_err(|_| format!("no request id: {found}"))?;
        variables.set(name, request_id.into());
    }
    Ok(())
}

fn compare(what: &str, found: &str, expected: &str) -> Outcome<()> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("the {what} of the error is {found:?}, not {expected:?}")),
    }
}

/// Whether the answer is that of the server itself.
pub fn same(answer: &Value, expected: &Result<DynamicMessage, DirectError>) -> Outcome<()> {
    match expected {
        Ok(expected) => {
            use prost_reflect::ReflectMessage;
            let found = message(answer, expected.descriptor())?;
            match found == *expected {
                true => Ok(()),
                false => Err(format!("the client has {found}, the server {expected}")),
            }
        }
        Err(expected) => {
            let found = answer.get("error").ok_or_else(|| format!("no error but {answer}"))?;
            let text = |name: &str| found[name].as_str().unwrap_or_default().to_owned();
            let found =
                DirectError { code: text("code"), reason: text("reason"), field: text("field") };
            match found == *expected {
                true => Ok(()),
                false => Err(format!("the client has {found:?}, the server {expected:?}")),
            }
        }
    }
}

/// The items of an answer with `results`.
pub fn results(answer: &Value) -> Outcome<&Vec<Value>> {
    answer["results"].as_array().ok_or_else(|| format!("no results: {answer}"))
}

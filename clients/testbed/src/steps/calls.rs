//! Single calls of the client.

use std::time::{Duration, Instant};

use prost_reflect::{DynamicMessage, MessageDescriptor, MethodDescriptor};
use serde_json::{Value, json};

use crate::puppet::Puppet;
use crate::runner::Runner;
use crate::scenario::{ExpectedError, Saved};
use crate::value::at;
use crate::{Outcome, api, check};

/// The expected answer of a call: any, if both are absent.
#[derive(Clone, Copy)]
pub struct Expected<'a> {
    pub answer: Option<&'a Value>,
    pub error: Option<&'a ExpectedError>,
}

impl<P: Puppet> Runner<'_, P> {
    /// A request of the scenario, with its variables filled in.
    pub fn request(&self, descriptor: MessageDescriptor, json: &Value) -> Outcome<DynamicMessage> {
        api::parse(descriptor, &self.variables.fill(json)?)
    }

    /// The request as the client sends it: with its tenant.
    pub fn with_tenant(&self, mut request: DynamicMessage) -> DynamicMessage {
        api::set_if_empty(&mut request, "tenant", &self.tenant);
        request
    }

    /// A unary call of the client. The answer to a read must be that of the server itself.
    pub async fn call(
        &mut self,
        method: &str,
        request: &Value,
        timeout_ms: Option<u64>,
        expected: Expected<'_>,
        save: &Saved,
    ) -> Outcome<()> {
        let method = self.api.method(method)?;
        let request = self.request(method.input(), request)?;
        let answer = self
            .ask(json!({
                "op": "call", "service": method.parent_service().name(), "method": method.name(),
                "request": api::encode(&request), "timeout_ms": timeout_ms,
            }))
            .await?;
        if let Some(error) = expected.error {
            return check::error(&answer, error, &mut self.variables);
        }
        let message = check::message(&answer, method.output())?;
        if api::only_reads(&method) {
            self.same_as_server(&method, request, &answer).await?;
        }
        self.accept(&message, expected.answer, save)
    }

    /// Saves parts of an answer, and compares it with the expected one.
    pub fn accept(
        &mut self,
        message: &DynamicMessage,
        expected: Option<&Value>,
        save: &Saved,
    ) -> Outcome<()> {
        let answer = api::json(message)?;
        for (name, path) in save {
            self.variables.set(name, at(&answer, path)?.clone());
        }
        let normal = self.variables.normal(&answer);
        match expected {
            Some(expected) if normal != *expected => {
                Err(format!("the answer is {normal}, not {expected}"))
            }
            _ => Ok(()),
        }
    }

    async fn same_as_server(
        &self,
        method: &MethodDescriptor,
        request: DynamicMessage,
        answer: &Value,
    ) -> Outcome<()> {
        let direct = self.direct(&self.caller)?;
        let expected = direct.call(method, &self.with_tenant(request)).await?;
        check::same(answer, &expected)
    }

    /// `resolve` of the client. The answer must be that of the server itself.
    pub async fn resolve(
        &mut self,
        request: &Value,
        timeout_ms: Option<u64>,
        error: Option<&ExpectedError>,
    ) -> Outcome<()> {
        let method = self.api.method("DirectoryService/ResolveIdentity")?;
        let request = self.request(method.input(), request)?;
        let answer = self
            .ask(json!({
                "op": "resolve", "request": api::encode(&request), "timeout_ms": timeout_ms,
            }))
            .await?;
        match error {
            Some(error) => check::error(&answer, error, &mut self.variables),
            None => {
                check::message(&answer, method.output())?;
                self.same_as_server(&method, request, &answer).await
            }
        }
    }

    /// `resolve` of the client, again after each deadline and each lost connection, until it is
    /// answered. It must be within this time.
    pub async fn resolve_within(
        &mut self,
        request: &Value,
        timeout_ms: Option<u64>,
        within: Duration,
    ) -> Outcome<()> {
        let method = self.api.method("DirectoryService/ResolveIdentity")?;
        let request = self.request(method.input(), request)?;
        let step = json!({
            "op": "resolve", "request": api::encode(&request), "timeout_ms": timeout_ms,
        });
        let begin = Instant::now();
        loop {
            let answer = self.ask(step.clone()).await?;
            if begin.elapsed() > within {
                return Err(format!("after {:?}, the client answers {answer}", begin.elapsed()));
            }
            let lost = ["DEADLINE_EXCEEDED", "UNAVAILABLE"];
            if !lost.iter().any(|kind| answer["error"]["type"] == *kind) {
                check::message(&answer, method.output())?;
                return self.same_as_server(&method, request, &answer).await;
            }
        }
    }
}

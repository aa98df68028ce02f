//! Every mutation under every fault, as scenarios.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::Outcome;
use crate::api::{Api, only_reads};
use crate::proxy::Fault;
use crate::scenario::{ExpectedError, Mutation, Mutations, Scenario, Step};

/// The time of a call whose answer never comes.
const SHORT_TIMEOUT_MS: u64 = 250;

/// Fails unless every unary mutation with a request id is one of the cases.
pub fn check(mutations: &Mutations, api: &Api) -> Outcome<()> {
    let covered: BTreeSet<&str> = mutations.cases.iter().map(|case| case.method.as_str()).collect();
    for method in api.methods() {
        let name = format!("{}/{}", method.parent_service().name(), method.name());
        let has_id = method.input().get_field_by_name("request_id").is_some();
        if has_id && !only_reads(&method) && !covered.contains(name.as_str()) {
            return Err(format!("scenarios.json has no case of the mutation {name}"));
        }
    }
    Ok(())
}

/// A scenario for each mutation and fault. Unless every fault is asked for, a mutation meets the
/// first fault and one of the others, in turn: that takes half of the time.
pub fn scenarios(mutations: &Mutations, every_fault: bool) -> Vec<Scenario> {
    let mut scenarios = Vec::new();
    for (number, case) in mutations.cases.iter().enumerate() {
        let others = mutations.faults.len() - 1;
        let is_next = |n: usize| n == 0 || n - 1 == number % others;
        let faults = mutations.faults.iter().enumerate();
        let faults = faults.filter(|(n, _)| every_fault || is_next(*n));
        scenarios.extend(faults.map(|(_, fault)| scenario(case, *fault)));
    }
    scenarios
}

fn scenario(mutation: &Mutation, fault: Fault) -> Scenario {
    let name = format!("{} happens once under {fault:?}", mutation.method);
    let faults = Step::Faults { faults: vec![fault], times: None };
    let calls = Step::Calls { at_least: Some(2), at_most: 2 };
    let during = match fault {
        // The deadline ends the call, and the caller repeats it with its request id.
        Fault::SwallowReply => vec![unknown(mutation), repeated(mutation)],
        _ => vec![call(mutation, mutation.request.clone())],
    };
    let before = mutation.before.iter().cloned().chain([faults]);
    let after = std::iter::once(calls).chain(mutation.after.iter().cloned());
    let steps = before.chain(during).chain(after).collect();
    let timed = fault == Fault::SwallowReply;
    Scenario { name, closes: false, timed, steps }
}

fn call(mutation: &Mutation, request: Value) -> Step {
    Step::Call {
        method: mutation.method.clone(),
        request,
        timeout_ms: None,
        answer: None,
        error: None,
        save: mutation.save.clone(),
    }
}

fn unknown(mutation: &Mutation) -> Step {
    Step::Call {
        method: mutation.method.clone(),
        request: mutation.request.clone(),
        timeout_ms: Some(SHORT_TIMEOUT_MS),
        answer: None,
        error: Some(ExpectedError {
            kind: "OUTCOME_UNKNOWN".to_owned(),
            reason: None,
            field: None,
            owner: None,
            retry_after: false,
            save_request_id: Some("request".to_owned()),
        }),
        save: Default::default(),
    }
}

fn repeated(mutation: &Mutation) -> Step {
    let mut request = mutation.request.clone();
    request["requestId"] = json!("$request");
    call(mutation, request)
}

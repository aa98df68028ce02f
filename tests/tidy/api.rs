//! The services and calls of `proto/` are those of the first table of docs/api.md.

use std::collections::BTreeSet;

/// A service and one of its calls.
pub type Call = (String, String);

/// Returns the calls that a file of `proto/` defines.
pub fn defined(proto: &str) -> BTreeSet<Call> {
    let mut service = "";
    let calls = proto.lines().filter_map(|line| {
        let name = |keyword| line.trim_start().strip_prefix(keyword)?.split([' ', '(']).next();
        service = name("service ").unwrap_or(service);
        Some((service.to_owned(), name("rpc ")?.to_owned()))
    });
    calls.collect()
}

/// Returns the calls in the rows of a table that begin with the name of a service.
pub fn documented(page: &str) -> BTreeSet<Call> {
    let rows = page.lines().filter(|line| line.starts_with("| `") && line.contains("Service`"));
    let calls = rows.flat_map(|row| {
        let cells: Vec<_> = row.split('|').collect();
        let service = cells[1].split('`').nth(1).unwrap_or_default();
        let calls = cells[2].split('`').skip(1).step_by(2);
        calls.map(|call| (service.to_owned(), call.to_owned())).collect::<Vec<_>>()
    });
    calls.collect()
}

#[test]
fn calls_are_parsed() {
    let call = |service: &str, call: &str| (service.to_owned(), call.to_owned());
    let calls = [call("AService", "Get"), call("BService", "Put")].into();
    let proto = "service AService {\n  rpc Get(G) returns (R);\n}\nservice BService {\n  \
                 // rpc No\n  rpc Put(P) returns (stream R) {\n}";
    assert_eq!(defined(proto), calls);
    let page = "| service | calls |\n| `AService`: a | `Get` |\n| `BService` | `Put` | x |\n";
    assert_eq!(documented(page), calls);
}

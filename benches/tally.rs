//! The time in which a call adds its tenant, outcome and identifier kind to the counters of usage.

use std::sync::Arc;

use divan::{Bencher, black_box};
use polynym_access::{Call, CallPurpose, Caller, Metric};

fn main() {
    divan::main();
}

#[divan::bench(threads = [1, 2, 16])]
fn resolve(bencher: Bencher<'_, '_>) {
    let caller = Arc::new(Caller::anonymous());
    bencher.bench(|| {
        let call = Call::new(caller.clone(), "ResolveIdentity", CallPurpose::default());
        call.set_tenant(black_box("default"));
        call.count(Metric::Resolve { kind: "email", found: true }, 1);
        call.count(Metric::Call { method: "ResolveIdentity", code: "OK" }, 1);
        call
    });
}

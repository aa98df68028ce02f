//! Iterates over all tenants of a store.

use crate::error::Error;
use crate::model::tenant_record::TenantRecord;
use crate::stores::Tenants;

/// Tenants in one page.
const PAGE_SIZE: usize = 100;

/// Passes every tenant of the store to `visit`, in the order of their names.
pub async fn each_tenant(
    store: &dyn Tenants,
    mut visit: impl FnMut(TenantRecord),
) -> Result<(), Error> {
    let mut after = String::new();
    loop {
        let page = store.tenants("", &after, PAGE_SIZE).await?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.name.as_str().to_owned();
        page.into_iter().for_each(&mut visit);
    }
}

//! Where the lines of an export go: to their own tenant, or to another one.

use polynym_proto::v1::ImportUsersRequest;

/// Where lines go.
#[derive(Clone, Debug, Default)]
pub struct Target {
    /// The tenant of all lines, whatever they name.
    pub tenant: Option<String>,
    /// Whether users get new ids.
    pub has_new_ids: bool,
}

impl Target {
    /// The line for the target. With new ids, merged users have none: only their ids name them.
    pub fn apply(&self, mut request: ImportUsersRequest) -> Option<ImportUsersRequest> {
        if let Some(tenant) = &self.tenant {
            if let Some(user) = &mut request.user {
                user.tenant.clear();
            }
            if let Some(record) = &mut request.tenant_record {
                record.tenant.clone_from(tenant);
            }
            if let Some(hold) = &mut request.ownerless_hold {
                hold.tenant.clone_from(tenant);
            }
        }
        if let Some(user) = request.user.as_mut().filter(|_| self.has_new_ids) {
            if !user.merged_into.is_empty() {
                return None;
            }
            user.user_id.clear();
            if let Some(internals) = &mut request.internals {
                internals.merged_user_ids.clear();
                internals.undo = None;
            }
        }
        Some(request)
    }
}

#[cfg(test)]
mod tests {
    use polynym_proto::v1::{Tenant, User};

    use super::*;

    #[test]
    fn lines_go_to_the_target() {
        let target = Target { tenant: Some("new".to_owned()), has_new_ids: true };
        let user = User { tenant: "old".to_owned(), user_id: "x".to_owned(), ..User::default() };
        let merged = User { merged_into: "y".to_owned(), ..user.clone() };
        let line = |user| ImportUsersRequest { user: Some(user), ..Default::default() };
        assert_eq!(target.apply(line(user)), Some(line(User::default())));
        assert_eq!(target.apply(line(merged)), None);
        let record = Tenant { tenant: "old".to_owned(), ..Tenant::default() };
        let line = ImportUsersRequest { tenant_record: Some(record), ..Default::default() };
        assert_eq!(target.apply(line).unwrap().tenant_record.unwrap().tenant, "new");
    }
}

//! The calls that make each change.

use polynym_proto::v1;
use tonic::Request;
use v1::bulk_action::{Action, Attributes, Delete, Disable, Enable, Undelete};

use super::scene::Scene;
use super::table::REASON;
use crate::calls::{handle, identity, text, user};
use crate::scenarios::bulk::until_ended;

impl Scene {
    /// A request with the reason and the operation of this change.
    fn with<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        for (name, value) in [("polynym-reason", REASON), ("polynym-operation-id", &self.operation)]
        {
            request.metadata_mut().insert(name, value.parse().unwrap());
        }
        request
    }

    /// Makes Joe or Eve what they are before the change.
    pub async fn prepare(&mut self, before: &str) {
        let (joe, eve) = (self.ids[0].clone(), self.ids[1].clone());
        match before {
            "" => {}
            "disable" => drop(self.client.disable(&joe).await.unwrap()),
            "delete" => drop(self.client.delete(&joe).await.unwrap()),
            "merge" => drop(self.client.merge(&joe, &eve).await.unwrap()),
            "link" => drop(self.client.link(&joe, handle(&self.name("new"))).await.unwrap()),
            "unlink" => drop(self.client.unlink(&joe, handle(&self.name("joe"))).await.unwrap()),
            other => panic!("{other}"),
        }
    }

    /// Makes the change. Adds the id of a new user.
    pub async fn apply(&mut self, row: &str) {
        match row.strip_prefix("bulk ") {
            Some(action) => self.bulk(action).await,
            None if row.starts_with("ON_") => self.import(row).await,
            None if row.ends_with("User") || row.ends_with("Users") => self.user(row).await,
            None => self.identity(row).await,
        }
    }

    async fn user(&mut self, row: &str) {
        let (joe, eve) = (self.ids[0].clone(), self.ids[1].clone());
        let mut registry = self.client.registry.clone();
        let user_id = joe.clone();
        match row {
            "CreateUser" => {
                let new = user("Pip", vec![handle(&self.name("pip"))]);
                let request = v1::CreateUserRequest { user: Some(new), ..Default::default() };
                let created = registry.create_user(self.with(request)).await.unwrap().into_inner();
                self.ids.push(created.user.unwrap().user_id);
            }
            "UpdateUser" => {
                let name = format!("Joseph {}", self.name("joe"));
                let mut renamed = v1::User { user_id, ..user(&name, Vec::new()) };
                renamed.attributes.insert("team".to_owned(), text("ads"));
                let request = v1::UpdateUserRequest { user: Some(renamed), ..Default::default() };
                registry.update_user(self.with(request)).await.unwrap();
            }
            "DisableUser" => {
                let request = v1::DisableUserRequest { user_id, ..Default::default() };
                registry.disable_user(self.with(request)).await.unwrap();
            }
            "EnableUser" => {
                let request = v1::EnableUserRequest { user_id, ..Default::default() };
                registry.enable_user(self.with(request)).await.unwrap();
            }
            "DeleteUser" => {
                let request = v1::DeleteUserRequest { user_id, ..Default::default() };
                registry.delete_user(self.with(request)).await.unwrap();
            }
            "UndeleteUser" => {
                let request = v1::UndeleteUserRequest { user_id, ..Default::default() };
                registry.undelete_user(self.with(request)).await.unwrap();
            }
            "MergeUsers" => {
                let request = crate::calls::merging(&joe, &eve);
                registry.merge_users(self.with(request)).await.unwrap();
            }
            "UnmergeUsers" => {
                let request = v1::UnmergeUsersRequest {
                    primary_user_id: joe,
                    secondary_user_id: eve,
                    ..Default::default()
                };
                registry.unmerge_users(self.with(request)).await.unwrap();
            }
            other => panic!("{other}"),
        }
    }

    async fn identity(&mut self, row: &str) {
        let (user_id, eve) = (self.ids[0].clone(), self.ids[1].clone());
        let own = Some(handle(&self.name("joe")));
        let new = Some(handle(&self.name("new")));
        let mut registry = self.client.registry.clone();
        match row {
            "LinkIdentity" | "primary" | "takeover" => {
                let (verified, primary) = (row == "takeover", row == "primary");
                let identifier = if verified { Some(self.email("eve")) } else { new };
                let request = v1::LinkIdentityRequest {
                    user_id,
                    identifier,
                    verified,
                    primary,
                    ..Default::default()
                };
                registry.link_identity(self.with(request)).await.unwrap();
            }
            "UnlinkIdentity" => {
                let request =
                    v1::UnlinkIdentityRequest { user_id, identifier: own, ..Default::default() };
                registry.unlink_identity(self.with(request)).await.unwrap();
            }
            "ReplaceIdentity" => {
                let request = v1::ReplaceIdentityRequest {
                    user_id,
                    old_identifier: own,
                    new_identifier: new,
                    ..Default::default()
                };
                registry.replace_identity(self.with(request)).await.unwrap();
            }
            "VerifyIdentity" => {
                let request = v1::VerifyIdentityRequest {
                    user_id,
                    identifier: own,
                    verified: true,
                    verified_by: "a letter".to_owned(),
                    ..Default::default()
                };
                registry.verify_identity(self.with(request)).await.unwrap();
            }
            "MoveIdentity" => {
                let request = v1::MoveIdentityRequest {
                    from_user_id: eve,
                    to_user_id: user_id,
                    identifier: Some(self.email("eve")),
                    ..Default::default()
                };
                registry.move_identity(self.with(request)).await.unwrap();
            }
            "ReleaseHold" => {
                let request = v1::ReleaseHoldRequest { identifier: own, ..Default::default() };
                self.client.admin.clone().release_hold(self.with(request)).await.unwrap();
            }
            other => panic!("{other}"),
        }
    }

    async fn bulk(&mut self, action: &str) {
        let action = match action {
            "disable" => Action::Disable(Disable {}),
            "enable" => Action::Enable(Enable {}),
            "delete" => Action::Delete(Delete {}),
            "undelete" => Action::Undelete(Undelete {}),
            _ => Action::Attributes(Attributes {
                set: [("team".to_owned(), text("ads"))].into(),
                remove: vec!["note".to_owned()],
            }),
        };
        let request = v1::StartBulkChangeRequest {
            bulk_id: self.operation.clone(),
            filter: format!("attributes.mark = \"joe {}\"", self.number),
            action: Some(v1::BulkAction { action: Some(action) }),
            ..Default::default()
        };
        self.client.registry.clone().start_bulk_change(self.with(request)).await.unwrap();
        let ended = until_ended(&mut self.client, &self.operation).await;
        assert_eq!(ended.state(), v1::BulkChangeState::Completed, "{ended:?}");
    }

    /// Imports a line about Joe, found by his handle, who has another name and email, a city and
    /// no note; or about a new user. If it is about conflicts, Eve has one of its identities.
    async fn import(&mut self, row: &str) {
        let is_new = row == "ON_EXISTING_REJECT";
        let conflict = v1::OnConflict::from_str_name(row);
        let on_existing = v1::OnExisting::from_str_name(row).unwrap_or(v1::OnExisting::Update);
        let options = v1::import_users_request::Options {
            tenant: "default".to_owned(),
            on_existing: on_existing.into(),
            on_conflict: conflict.unwrap_or_default().into(),
            key: if is_new { String::new() } else { "handle".to_owned() },
            fields: ["display_name", "email", "handle", "attributes"].map(str::to_owned).to_vec(),
            ..Default::default()
        };
        let options = Some(options);
        let first = v1::ImportUsersRequest { options, ..Default::default() };
        let name = self.name(if is_new { "new" } else { "joe" });
        let mut person = user(&format!("Joey {}", self.name("joe")), vec![handle(&name)]);
        person.identities.push(identity(self.email("new")));
        person.identities.extend(conflict.map(|_| identity(self.email("eve"))));
        person.attributes.insert("team".to_owned(), text("ads"));
        person.attributes.insert("city".to_owned(), text("Oslo"));
        let line = v1::ImportUsersRequest { line: 1, user: Some(person), ..Default::default() };
        let request = self.with(tokio_stream::iter([first, line]));
        let answers = self.client.admin.clone().import_users(request).await.unwrap();
        let mut answers = answers.into_inner();
        let mut rejects = Vec::new();
        while let Some(answer) = answers.message().await.unwrap() {
            rejects.extend(answer.rejects.into_iter().map(|reject| reject.reason));
        }
        let expected = conflict.map(|_| "IDENTITY_TAKEN".to_owned());
        assert_eq!(rejects, expected.into_iter().collect::<Vec<_>>());
        if is_new {
            let new = self.client.resolve(handle(&name)).await.unwrap();
            self.ids.push(new.user.unwrap().user_id);
        }
    }
}

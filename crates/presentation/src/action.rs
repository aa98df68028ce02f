//! The actions that change the state of users.

use polynym_proto::v1::bulk_action::{Action as BulkAction, Delete, Disable, Enable, Undelete};

/// An action on a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Disables the user.
    Disable,
    /// Enables the user.
    Enable,
    /// Deletes the user.
    Delete,
    /// Restores a deleted user.
    Undelete,
}

/// The words of an action.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// The command, and the last part of the address of its page.
    pub name: &'static str,
    /// The verb.
    pub verb: &'static str,
    /// The participle.
    pub done: &'static str,
    /// Its consequences, in sentences.
    pub effect: &'static str,
    /// The method of the API.
    pub method: &'static str,
    /// Whether the identifiers of the user no longer resolve after it.
    pub is_destructive: bool,
}

impl Words {
    /// The verb at the beginning of a sentence.
    pub fn imperative(&self) -> String {
        let (first, rest) = self.verb.split_at(1);
        first.to_ascii_uppercase() + rest
    }
}

impl Action {
    /// The actions, in the order of their lists.
    pub const ALL: [Self; 4] = [Self::Disable, Self::Enable, Self::Delete, Self::Undelete];

    /// The words.
    pub const fn words(self) -> Words {
        match self {
            Self::Disable => Words {
                name: "disable",
                verb: "disable",
                done: "disabled",
                effect: "The user keeps its identifiers, but they no longer resolve. Enable the \
                         user to undo this.",
                method: "RegistryService/DisableUser",
                is_destructive: true,
            },
            Self::Enable => Words {
                name: "enable",
                verb: "enable",
                done: "enabled",
                effect: "The identifiers of the user resolve again.",
                method: "RegistryService/EnableUser",
                is_destructive: false,
            },
            Self::Delete => Words {
                name: "delete",
                verb: "delete",
                done: "deleted",
                effect: "The identifiers of the user no longer resolve, and nobody else can take \
                         them until the user is purged.",
                method: "RegistryService/DeleteUser",
                is_destructive: true,
            },
            Self::Undelete => Words {
                name: "undelete",
                verb: "restore",
                done: "restored",
                effect: "The identifiers of the user resolve again, except those that others took \
                         in the meantime.",
                method: "RegistryService/UndeleteUser",
                is_destructive: false,
            },
        }
    }

    /// The action of a bulk change that does the same to each user.
    pub const fn bulk(self) -> BulkAction {
        match self {
            Self::Disable => BulkAction::Disable(Disable {}),
            Self::Enable => BulkAction::Enable(Enable {}),
            Self::Delete => BulkAction::Delete(Delete {}),
            Self::Undelete => BulkAction::Undelete(Undelete {}),
        }
    }

    /// The actions of bulk changes: the names, and the labels such as `Disable the users`.
    pub fn bulk_labels() -> impl Iterator<Item = (&'static str, String)> {
        let label = |action: Self| {
            let words = action.words();
            (words.name, format!("{} the users", words.imperative()))
        };
        Self::ALL.into_iter().map(label)
    }

    /// The action of a bulk change with this name.
    pub fn bulk_named(name: &str) -> Option<BulkAction> {
        Self::ALL.into_iter().find(|action| action.words().name == name).map(Self::bulk)
    }

    /// The sentence for a participle, such as `The user was disabled.`; none for other words.
    pub fn sentence(done: &str) -> Option<String> {
        let known = Self::ALL.iter().find(|action| action.words().done == done);
        known.map(|action| format!("The user was {}.", action.words().done))
    }
}

/// The name of a bulk change's action; none if it changes attributes, or undoes an operation.
pub fn bulk_name(action: &BulkAction) -> Option<&'static str> {
    of_bulk(action).map(|words| words.name)
}

/// The operation that a bulk change undoes.
pub fn undone(action: &BulkAction) -> Option<&str> {
    match action {
        BulkAction::Undo(undo) => Some(&undo.operation_id),
        _ => None,
    }
}

/// The verb and the participle of a bulk change's action, such as `disable` and `disabled`.
pub fn bulk_words(action: &BulkAction) -> (&'static str, &'static str) {
    match action {
        BulkAction::Undo(_) => ("undo", "undone"),
        _ => of_bulk(action).map_or(("update", "updated"), |words| (words.verb, words.done)),
    }
}

/// The words of a bulk change's action that changes the state of users.
fn of_bulk(action: &BulkAction) -> Option<Words> {
    let known = Action::ALL.into_iter().find(|known| known.bulk() == *action);
    known.map(Action::words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use polynym_proto::v1::bulk_action::Undo;

    #[test]
    fn actions_have_names() {
        let labels: Vec<_> = Action::bulk_labels().collect();
        assert_eq!(labels[0], ("disable", "Disable the users".to_owned()));
        for (name, _) in labels {
            assert_eq!(bulk_name(&Action::bulk_named(name).unwrap()), Some(name));
        }
        assert!(Action::bulk_named("set").is_none());
        let attributes = BulkAction::Attributes(Default::default());
        assert_eq!((bulk_name(&attributes), bulk_words(&attributes).1), (None, "updated"));
        let undo = BulkAction::Undo(Undo { operation_id: "import-1".to_owned() });
        assert_eq!((bulk_words(&undo).0, undone(&undo)), ("undo", Some("import-1")));
        assert_eq!(bulk_words(&BulkAction::Undelete(Undelete {})), ("restore", "restored"));
        assert_eq!(Action::sentence("restored").unwrap(), "The user was restored.");
    }
}

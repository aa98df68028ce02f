//! The findings of a verification.

use std::fmt;

use locality_uuid::LocalityId;

use super::bulk_fault::BulkFault;
use polynym_identifier::IdentityKey;

/// A fault of the index of searches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IndexFault {
    /// The index lacks entries of this user.
    Missing(LocalityId),
    /// An entry whose user, if it names one, does not have the value.
    Stray(Option<LocalityId>, Vec<u8>),
}

/// A fault of a notice, or of the content that it shares with the notices of other users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoticeFault {
    /// A record, by its key as text, that is not a notice or the content of one.
    Unreadable(String),
    /// A notice has lost its content: the user, the position in the inbox, and the notice.
    Lost(LocalityId, u64, LocalityId),
    /// The content does not list a user who has the notice.
    Unlisted(LocalityId, LocalityId),
    /// The content lists a user who does not have the notice.
    Stray(LocalityId, LocalityId),
    /// No user has this notice, but its content is there.
    Unused(LocalityId),
    /// The notice of a user who does not exist.
    Ownerless(LocalityId, LocalityId),
}

/// Writes the kinds of inconsistency: of each its name, a word for programs, what is wrong, and
/// how it is repaired, or why it is left unchanged.
macro_rules! inconsistencies {
    ($($kind:ident $word:literal $text:literal $treatment:ident $remedy:literal;)*) => {
        /// The kinds of inconsistency between users, claims, what searches read, histories, inboxes
        /// and bulk changes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Inconsistency {
            $(#[doc = $text] $kind,)*
        }

        impl Inconsistency {
            const fn row(self) -> Row {
                match self {
                    $(Self::$kind => Row {
                        word: $word,
                        text: $text,
                        treatment: Treatment::$treatment,
                        remedy: $remedy,
                    },)*
                }
            }
        }
    };
}

/// The words and the repair of a kind of inconsistency.
struct Row {
    word: &'static str,
    text: &'static str,
    treatment: Treatment,
    remedy: &'static str,
}

enum Treatment {
    Repair,
    Leave,
}

inconsistencies! {
    Unclaimed "unclaimed"
        "an identity that a user lists has no claim"
        Repair "the claim is created";
    Misclaimed "misclaimed"
        "the claim on an identity that a user lists names a user who does not list it"
        Repair "the claim is given to the user who lists the key";
    Differs "differs"
        "the claim on an identity has other data than its user"
        Repair "the claim is rewritten";
    Shared "shared"
        "two users list the same identity"
        Leave "unlink it from one of the two users";
    Unclear "unclear"
        "an identity that a user lists has a claim, or a claim's user, that cannot be read"
        Leave "repair the unreadable records first";
    Ownerless "ownerless"
        "a claim names a user who does not exist"
        Repair "the claim is deleted";
    Unlisted "unlisted"
        "a claim names a user who does not list its key"
        Repair "the claim is deleted";
    Unowned "unowned"
        "a claim has no owner"
        Repair "the claim is deleted";
    Unnamed "unnamed"
        "an attribute of a user has no name"
        Leave "restore a backup that has the name";
    Unindexed "unindexed"
        "the index of searches lacks values that a user has"
        Repair "the missing entries are added";
    StrayEntry "stray_entry"
        "an entry of the index of searches has a value that its user does not have"
        Repair "the entry is deleted";
    LostContent "lost_content"
        "a notice of a user has lost its content"
        Repair "the notice is deleted";
    UnlistedNotice "unlisted_notice"
        "the content of a notice does not list a user who has it"
        Repair "the user is listed";
    StrayContent "stray_content"
        "the content of a notice lists a user who does not have it, or nobody"
        Repair "the user is no longer listed, or the content is deleted";
    StrayNotice "stray_notice"
        "a notice is in the inbox of a user who does not exist"
        Repair "the notice is deleted";
    History "history"
        "the events of a user's history do not end in the user's state"
        Leave "the true history is unknown";
    Ownership "ownership"
        "an ended ownership of an identity and the history of its user differ"
        Leave "the true history is unknown";
    Unmerged "unmerged"
        "a user lists another one as merged into it that was not"
        Repair "it no longer lists the other user";
    DamagedUndo "damaged_undo"
        "the undo data of a user's merge belongs to another user, or no call can set it"
        Repair "the undo data is removed";
    Orphan "orphan"
        "a merged user leads to no user who lists it"
        Leave "import its primary, or purge it";
    UnscheduledBulk "unscheduled_bulk"
        "a bulk change is stored under another state or time than its own"
        Repair "it is stored under its own";
    StrayBulkTime "stray_bulk_time"
        "a bulk change is due at a time that is not its own"
        Repair "the entry is deleted";
    TenantlessBulk "tenantless_bulk"
        "a bulk change belongs to a tenant that does not exist"
        Repair "it is deleted";
    LostBulkUsers "lost_bulk_users"
        "a part of the list of a bulk change is not there"
        Leave "start another bulk change of the users";
    StrayBulkUsers "stray_bulk_users"
        "a list of users belongs to no bulk change"
        Repair "it is deleted";
    UnreadableUser "unreadable_user"
        "a record among the users is not a user"
        Leave "this program did not write it: it is left unchanged";
    UnreadableClaim "unreadable_claim"
        "a record among the claims is not a claim"
        Leave "this program did not write it: it is left unchanged";
    UnreadableBulk "unreadable_bulk"
        "a record among the bulk changes is not that of its key"
        Leave "this program did not write it: it is left unchanged";
    UnreadableNotice "unreadable_notice"
        "a record among the notices is not a notice"
        Leave "this program did not write it: it is left unchanged";
}

/// The state of a fault after a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairState {
    /// It can be repaired, but no repair was requested.
    Pending,
    /// It was repaired.
    Done,
    /// It cannot be repaired from the store's data.
    Impossible,
}

/// One inconsistency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind of inconsistency.
    pub fault: Inconsistency,
    /// The user that the finding is about.
    pub user: Option<LocalityId>,
    /// A second user that the finding is about.
    pub other: Option<LocalityId>,
    /// The key that it is about.
    pub key: Option<IdentityKey>,
    /// As text: the id of an unreadable record, if neither user nor key identifies it; an entry of
    /// the index; the id of a notice; or the tenant and the id of a bulk change.
    pub document: Option<String>,
    /// The state of the fault.
    pub repair: RepairState,
}

/// The summary of a verification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Users that were read.
    pub users: u64,
    /// Claims that were read.
    pub claims: u64,
    /// Findings.
    pub findings: u64,
    /// Findings that were repaired.
    pub repaired: u64,
    /// Findings that `--repair` would repair.
    pub repairable: u64,
}

impl Inconsistency {
    /// Whether the user's record decides the repair.
    pub const fn is_repairable(self) -> bool {
        matches!(self.row().treatment, Treatment::Repair)
    }

    /// A word for programs.
    pub const fn word(self) -> &'static str {
        self.row().word
    }

    /// The repair of a fault, or the reason why it has none.
    pub const fn remedy(self) -> &'static str {
        self.row().remedy
    }
}

impl fmt::Display for Inconsistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().text)
    }
}

impl Finding {
    /// A fault of a user, which cannot be repaired.
    pub(super) const fn of_user(fault: Inconsistency, user: LocalityId) -> Self {
        let repair = RepairState::Impossible;
        Self { fault, user: Some(user), other: None, key: None, document: None, repair }
    }

    /// An unreadable record, as a user if it has the id of one.
    pub(super) fn of_document(fault: Inconsistency, id: String) -> Self {
        let user = (fault == Inconsistency::UnreadableUser).then(|| id.parse().ok()).flatten();
        let document = user.is_none().then_some(id);
        let repair = RepairState::Impossible;
        Self { fault, user, other: None, key: None, document, repair }
    }

    /// A fault of an ended ownership, which cannot be repaired.
    pub(super) const fn of_ownership(key: IdentityKey, user: Option<LocalityId>) -> Self {
        let (fault, repair) = (Inconsistency::Ownership, RepairState::Impossible);
        Self { fault, user, other: None, key: Some(key), document: None, repair }
    }

    /// A fault of the index.
    pub(super) fn of_index(fault: &IndexFault, repair: RepairState) -> Self {
        let (fault, user, document) = match fault {
            IndexFault::Missing(user) => (Inconsistency::Unindexed, Some(*user), None),
            IndexFault::Stray(user, entry) => {
                (Inconsistency::StrayEntry, *user, Some(entry.escape_ascii().to_string()))
            }
        };
        Self { fault, user, other: None, key: None, document, repair }
    }

    /// A fault of a notice.
    pub(super) fn of_notice(fault: &NoticeFault, repair: RepairState) -> Self {
        use Inconsistency::{LostContent, StrayContent, StrayNotice, UnlistedNotice};
        let (fault, user, document) = match fault {
            NoticeFault::Lost(user, _, id) => (LostContent, Some(*user), id.to_string()),
            NoticeFault::Unlisted(user, id) => (UnlistedNotice, Some(*user), id.to_string()),
            NoticeFault::Stray(user, id) => (StrayContent, Some(*user), id.to_string()),
            NoticeFault::Unused(id) => (StrayContent, None, id.to_string()),
            NoticeFault::Ownerless(user, id) => (StrayNotice, Some(*user), id.to_string()),
            NoticeFault::Unreadable(key) => (Inconsistency::UnreadableNotice, None, key.clone()),
        };
        Self { fault, user, other: None, key: None, document: Some(document), repair }
    }

    /// A fault of a bulk change.
    pub(super) fn of_bulk(fault: &BulkFault, repair: RepairState) -> Self {
        let (fault, document) = match fault {
            BulkFault::Unreadable(key) => (Inconsistency::UnreadableBulk, key.clone()),
            BulkFault::Tenantless(key) => (Inconsistency::TenantlessBulk, key.to_string()),
            BulkFault::Unscheduled(key) => (Inconsistency::UnscheduledBulk, key.to_string()),
            BulkFault::StrayTime(_, key) => (Inconsistency::StrayBulkTime, key.to_string()),
            BulkFault::LostUsers(key) => (Inconsistency::LostBulkUsers, key.to_string()),
            BulkFault::StrayUsers(key) => (Inconsistency::StrayBulkUsers, key.to_string()),
        };
        Self { fault, user: None, other: None, key: None, document: Some(document), repair }
    }
}

impl Summary {
    /// Counts a finding.
    pub(super) fn add(&mut self, finding: &Finding) {
        self.findings += 1;
        self.repaired += u64::from(finding.repair == RepairState::Done);
        self.repairable += u64::from(finding.repair == RepairState::Pending);
    }

    /// Whether no unrepaired inconsistency is left.
    pub const fn is_clean(&self) -> bool {
        self.findings == self.repaired
    }
}

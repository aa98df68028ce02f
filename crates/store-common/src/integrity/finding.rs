//! The findings of a verification.

use std::fmt;

use locality_uuid::LocalityId;

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

/// A fault of a bulk change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BulkFault {
    /// A record, by its key as text, that is not the bulk change of the key.
    Unreadable(String),
    /// A bulk change whose tenant does not exist.
    Tenantless(BulkKey),
    /// A bulk change that is stored under another state or time than its own.
    Unscheduled(BulkKey),
    /// A time, in milliseconds, at which servers look in vain for a bulk change.
    StrayTime(i64, BulkKey),
}

/// The tenant and the id of a bulk change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkKey {
    /// The tenant.
    pub tenant: String,
    /// The id.
    pub id: String,
}

impl BulkKey {
    /// The key of these names.
    pub fn new((tenant, id): (&str, &str)) -> Self {
        Self { tenant: tenant.to_owned(), id: id.to_owned() }
    }
}

impl fmt::Display for BulkKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tenant, self.id)
    }
}

/// The kinds of inconsistency between users, claims, what searches read, histories, inboxes and
/// bulk changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Inconsistency {
    /// A user lists a key that has no claim.
    Unclaimed,
    /// A user lists a key whose claim names another user, who does not list it.
    Misclaimed,
    /// A user lists a key whose claim names that user, but with other data.
    Differs,
    /// Two users list the same key.
    Shared,
    /// A user lists a key whose claim, or whose claim's user, cannot be read.
    Unclear,
    /// A claim names a user who does not exist.
    Ownerless,
    /// A claim names a user who does not list its key.
    Unlisted,
    /// A claim without an owner or a hold.
    Unowned,
    /// A user has an attribute without a name.
    Unnamed,
    /// The index of searches lacks values of a user.
    Unindexed,
    /// An entry of the index of searches has a value that its user does not have.
    StrayEntry,
    /// A notice of a user has lost its content.
    LostContent,
    /// The content of a notice does not list a user who has it.
    UnlistedNotice,
    /// The content of a notice lists a user who does not have it, or nobody.
    StrayContent,
    /// A notice of a user who does not exist.
    StrayNotice,
    /// The events of a user's history do not end in the user's state.
    History,
    /// An ended ownership and the history of its user contradict each other.
    Ownership,
    /// A user lists another user as merged into it who was not.
    Unmerged,
    /// The undo data of a user's merge belongs to another user, or has values that no call can set.
    DamagedUndo,
    /// A merged user leads to no user, or to one who does not list it.
    Orphan,
    /// A bulk change is stored under another state or time than its own.
    UnscheduledBulk,
    /// Servers look for a bulk change at a time that is not its own.
    StrayBulkTime,
    /// A bulk change belongs to a tenant that does not exist.
    TenantlessBulk,
    /// A record among the users is not a user.
    UnreadableUser,
    /// A record among the claims is not a claim.
    UnreadableClaim,
    /// A record among the bulk changes is not that of its key.
    UnreadableBulk,
    /// A record among the notices is not a notice.
    UnreadableNotice,
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
    /// All kinds.
    pub const ALL: [Self; 27] = [
        Self::Unclaimed,
        Self::Misclaimed,
        Self::Differs,
        Self::Shared,
        Self::Unclear,
        Self::Ownerless,
        Self::Unlisted,
        Self::Unowned,
        Self::Unnamed,
        Self::Unindexed,
        Self::StrayEntry,
        Self::LostContent,
        Self::UnlistedNotice,
        Self::StrayContent,
        Self::StrayNotice,
        Self::History,
        Self::Ownership,
        Self::Unmerged,
        Self::DamagedUndo,
        Self::Orphan,
        Self::UnscheduledBulk,
        Self::StrayBulkTime,
        Self::TenantlessBulk,
        Self::UnreadableUser,
        Self::UnreadableClaim,
        Self::UnreadableBulk,
        Self::UnreadableNotice,
    ];

    /// Whether the user's record decides the repair.
    pub const fn is_repairable(self) -> bool {
        match self {
            Self::Unclaimed | Self::Misclaimed | Self::Differs => true,
            Self::Ownerless | Self::Unlisted | Self::Unowned => true,
            Self::Unindexed | Self::StrayEntry => true,
            Self::LostContent | Self::UnlistedNotice => true,
            Self::StrayContent | Self::StrayNotice => true,
            Self::Unmerged | Self::DamagedUndo => true,
            Self::UnscheduledBulk | Self::StrayBulkTime | Self::TenantlessBulk => true,
            Self::Shared | Self::Unclear | Self::Unnamed => false,
            Self::History | Self::Ownership | Self::Orphan => false,
            Self::UnreadableUser | Self::UnreadableClaim => false,
            Self::UnreadableBulk | Self::UnreadableNotice => false,
        }
    }

    /// A word for programs.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unclaimed => "unclaimed",
            Self::Misclaimed => "misclaimed",
            Self::Differs => "differs",
            Self::Shared => "shared",
            Self::Unclear => "unclear",
            Self::Ownerless => "ownerless",
            Self::Unlisted => "unlisted",
            Self::Unowned => "unowned",
            Self::Unnamed => "unnamed",
            Self::Unindexed => "unindexed",
            Self::StrayEntry => "stray_entry",
            Self::LostContent => "lost_content",
            Self::UnlistedNotice => "unlisted_notice",
            Self::StrayContent => "stray_content",
            Self::StrayNotice => "stray_notice",
            Self::History => "history",
            Self::Ownership => "ownership",
            Self::Unmerged => "unmerged",
            Self::DamagedUndo => "damaged_undo",
            Self::Orphan => "orphan",
            Self::UnscheduledBulk => "unscheduled_bulk",
            Self::StrayBulkTime => "stray_bulk_time",
            Self::TenantlessBulk => "tenantless_bulk",
            Self::UnreadableUser => "unreadable_user",
            Self::UnreadableClaim => "unreadable_claim",
            Self::UnreadableBulk => "unreadable_bulk",
            Self::UnreadableNotice => "unreadable_notice",
        }
    }

    /// The repair of a fault, or the reason why it has none.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Unclaimed => "the claim is created",
            Self::Misclaimed => "the claim is given to the user who lists the key",
            Self::Differs => "the claim is rewritten",
            Self::Ownerless | Self::Unlisted | Self::Unowned => "the claim is deleted",
            Self::Unnamed => "restore a backup that has the name",
            Self::Unindexed => "the missing entries are added",
            Self::StrayEntry => "the entry is deleted",
            Self::LostContent | Self::StrayNotice => "the notice is deleted",
            Self::UnlistedNotice => "the user is listed",
            Self::StrayContent => "the user is no longer listed, or the content is deleted",
            Self::History | Self::Ownership => "the true history is unknown",
            Self::Unmerged => "it no longer lists the other user",
            Self::DamagedUndo => "the undo data is removed",
            Self::Orphan => "import its primary, or purge it",
            Self::Shared => "unlink it from one of the two users",
            Self::Unclear => "repair the unreadable records first",
            Self::UnscheduledBulk => "it is stored under its own",
            Self::StrayBulkTime => "the entry is deleted",
            Self::TenantlessBulk => "it is deleted",
            Self::UnreadableUser
            | Self::UnreadableClaim
            | Self::UnreadableBulk
            | Self::UnreadableNotice => "this program did not write it: it is left unchanged",
        }
    }
}

impl fmt::Display for Inconsistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unclaimed => "an identity that a user lists has no claim",
            Self::Misclaimed => {
                "the claim on an identity that a user lists names a user who does not list it"
            }
            Self::Differs => "the claim on an identity has other data than its user",
            Self::Shared => "two users list the same identity",
            Self::Unclear => {
                "an identity that a user lists has a claim, or a claim's user, that cannot be read"
            }
            Self::Ownerless => "a claim names a user who does not exist",
            Self::Unlisted => "a claim names a user who does not list its key",
            Self::Unowned => "a claim has no owner",
            Self::Unnamed => "an attribute of a user has no name",
            Self::Unindexed => "the index of searches lacks values that a user has",
            Self::StrayEntry => {
                "an entry of the index of searches has a value that its user does not have"
            }
            Self::LostContent => "a notice of a user has lost its content",
            Self::UnlistedNotice => "the content of a notice does not list a user who has it",
            Self::StrayContent => {
                "the content of a notice lists a user who does not have it, or nobody"
            }
            Self::StrayNotice => "a notice is in the inbox of a user who does not exist",
            Self::History => "the events of a user's history do not end in the user's state",
            Self::Ownership => {
                "an ended ownership of an identity and the history of its user differ"
            }
            Self::Unmerged => "a user lists another one as merged into it that was not",
            Self::DamagedUndo => {
                "the undo data of a user's merge belongs to another user, or no call can set it"
            }
            Self::Orphan => "a merged user leads to no user who lists it",
            Self::UnscheduledBulk => {
                "a bulk change is stored under another state or time than its own"
            }
            Self::StrayBulkTime => "a bulk change is due at a time that is not its own",
            Self::TenantlessBulk => "a bulk change belongs to a tenant that does not exist",
            Self::UnreadableUser => "a record among the users is not a user",
            Self::UnreadableClaim => "a record among the claims is not a claim",
            Self::UnreadableBulk => "a record among the bulk changes is not that of its key",
            Self::UnreadableNotice => "a record among the notices is not a notice",
        })
    }
}

impl Finding {
    /// A fault of a user, which cannot be repaired.
    pub(super) const fn of_user(fault: Inconsistency, user: LocalityId) -> Self {
        let repair = RepairState::Impossible;
        Self { fault, user: Some(user), other: None, key: None, document: None, repair }
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

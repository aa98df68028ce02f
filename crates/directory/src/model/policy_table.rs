//! The policies of one value, one row each: the name in this program, the default, the name in the
//! API, and the number of the policy in hashes of requests.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use polynym_identifier::Kind;

use super::policies::HistoryExtension;
use super::policy_field::{Field, Policy};
use crate::model::attribute_definition::{AttributeDefinition, DefinitionUpdate};
use crate::timestamp::Timestamp;

const fn days(count: u64) -> Duration {
    Duration::from_secs(count * 24 * 60 * 60)
}

/// The maximum of holds, retentions and the restore window: ten years.
pub(crate) const MAX_PERIOD: Duration = days(3_650);
/// The maximum undo window. Until it ends, the merged user keeps a snapshot.
pub(crate) const MAX_UNDO_WINDOW: Duration = days(365);
/// The maximum limit of notices in an inbox.
const MAX_INBOX_LIMIT: u32 = 10_000;

/// The number of the last field of the API's message of policies that this program supports.
pub(crate) const LAST_FIELD: u32 = 20;

macro_rules! policies {
    ($(
        $(#[$doc:meta])*
        $field:ident: $type:ty = $default:expr, $kind:ident($path:ident, $($bound:expr)?),
            $number:expr;
    )*) => {
        /// The rules of one tenant.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Policies {
            /// The time for which an identifier of each kind is held for its former owner. Other
            /// kinds are not held.
            pub holds: BTreeMap<Kind, Duration>,
            $($(#[$doc])* pub $field: $type,)*
            /// The canonical forms of handles that cannot be registered or linked; by default
            /// [`RESERVED_HANDLES`](crate::model::reserved::DEFAULT).
            pub reserved_handles: Option<BTreeSet<String>>,
            /// The regions in which FindUsers reads phone numbers in national form, in this order.
            pub phone_regions: Vec<String>,
            /// Definitions of attributes, by name. An attribute without one is indexed and takes
            /// values of any type.
            pub attributes: BTreeMap<String, AttributeDefinition>,
            /// The time when the complete history begins; `None`: with the tenant.
            pub history_since: Option<Timestamp>,
            /// The time when the retention of history was shortened, while the servers remove older
            /// events.
            pub history_change: Option<Timestamp>,
            /// The last time that the retention of history became longer.
            pub history_extension: Option<HistoryExtension>,
        }

        impl Default for Policies {
            fn default() -> Self {
                Self {
                    holds: BTreeMap::from([(Kind::Handle, days(30))]),
                    $($field: $default,)*
                    reserved_handles: None,
                    phone_regions: Vec::new(),
                    attributes: BTreeMap::new(),
                    history_since: None,
                    history_change: None,
                    history_extension: None,
                }
            }
        }

        /// New values for some of a tenant's policies. Absent ones stay unchanged.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct PolicyUpdate {
            /// New periods for some kinds.
            pub holds: BTreeMap<Kind, Duration>,
            $($(#[$doc])* pub $field: Option<$type>,)*
            /// See [`Policies::reserved_handles`].
            pub reserved_handles: Option<Option<BTreeSet<String>>>,
            /// See [`Policies::phone_regions`].
            pub phone_regions: Option<Vec<String>>,
            /// See [`Policies::attributes`].
            pub attributes: DefinitionUpdate,
        }

        /// The policies of one value.
        pub static POLICIES: &[Policy] = &[$(Policy::$kind(Field {
            path: stringify!($path),
            number: $number,
            default: $default,
            value: |policies| policies.$field,
            value_mut: |policies| &mut policies.$field,
            update: |update| update.$field,
            update_mut: |update| &mut update.$field,
            message: |message| message.$path,
            message_mut: |message| &mut message.$path,
        }, $($bound)?),)*];
    };
}

policies! {
    /// Whether only verified identities resolve.
    hide_unverified: bool = false, Switch(hide_unverified,), None;
    /// Whether a user who links a verified identity takes it from a user who has it unverified.
    verified_wins: bool = false, Switch(verified_wins,), None;
    /// The time by which a verification of a phone must be newer to take the phone from a user who
    /// has verified it; zero for never.
    phone_takeover_after: Duration = Duration::ZERO,
        Window(phone_takeover_after, MAX_PERIOD), Some(9);
    /// Whether a primary identity cannot be unlinked while the user has others of its kind.
    keep_primary: bool = false, Switch(keep_primary_identity,), None;
    /// Whether a user's last identity cannot be unlinked.
    keep_last: bool = false, Switch(keep_last_identity,), None;
    /// Whether handles may look like others.
    allow_lookalikes: bool = false, Switch(allow_lookalikes,), None;
    /// The time for which a deleted user can be restored.
    restore_window: Duration = days(30), Window(restore_window, MAX_PERIOD), None;
    /// The time for which a merge can be undone.
    undo_window: Duration = days(7), Window(undo_window, MAX_UNDO_WINDOW), None;
    /// The time for which the history of users and ownerships is kept; zero keeps none.
    history_retention: Duration = days(400), Window(history_retention, MAX_PERIOD), Some(4);
    /// The time for which a notice stays in an inbox.
    inbox_retention: Duration = days(90), Window(inbox_retention, MAX_PERIOD), Some(5);
    /// The number of notices that an inbox keeps.
    inbox_limit: u32 = 1_000, Count(inbox_limit, MAX_INBOX_LIMIT), Some(6);
    /// Whether users get notices about changes by the rules.
    rule_notices: bool = false, Switch(rule_notices,), Some(7);
}

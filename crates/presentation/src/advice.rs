//! Advice for people about errors, a row for each reason that has some.

/// The advice about a reason.
#[derive(Debug)]
pub struct Advice {
    /// The reason, such as `IDENTITY_TAKEN`.
    pub reason: &'static str,
    /// The advice on a terminal; empty if there is none.
    pub terminal: &'static str,
    /// The advice on a page, as sentences; empty for that of the error's kind.
    pub page: &'static str,
}

/// The advice on a terminal about a reason.
pub fn terminal(reason: &str) -> Option<&'static str> {
    find(reason).map(|advice| advice.terminal).filter(|text| !text.is_empty())
}

/// The advice on a page about a reason.
pub fn page(reason: &str) -> Option<&'static str> {
    find(reason).map(|advice| advice.page).filter(|text| !text.is_empty())
}

fn find(reason: &str) -> Option<&'static Advice> {
    ADVICE.iter().find(|advice| advice.reason == reason)
}

/// The advice if the caller's role is too low, on a page.
pub const HIGHER_ROLE: &str = "Sign in with a credential of a higher role.";

/// The advice, in the order of the reasons in docs/api.md.
pub static ADVICE: &[Advice] = &[
    Advice {
        reason: "IDENTIFIER_INVALID",
        terminal: "`polynym identity normalize` shows how an identifier is read, and where it is \
                   wrong",
        page: "",
    },
    Advice {
        reason: "HISTORY_EXPIRED",
        terminal: "use a later time: see the earliest above",
        page: "",
    },
    Advice {
        reason: "STREAM_ENDED",
        terminal: "run the same command again, at another server or once this one is back",
        page: "",
    },
    Advice { reason: "ATTRIBUTE_NAMES_FULL", terminal: "", page: "Remove something first." },
    Advice { reason: "BATCH_TOO_LARGE", terminal: "request fewer at a time", page: "" },
    Advice {
        reason: "REQUEST_ID_REUSED",
        terminal: "omit --request-id, or use a new UUID",
        page: "This form did something else before. Send it again to do this.",
    },
    Advice {
        reason: "CREDENTIAL_INVALID",
        terminal: "name the file of a token with --token-file, or a certificate with --cert and \
                   --key; `polynym token create` makes a token for a server's --credentials",
        page: "",
    },
    Advice {
        reason: "ROLE_DENIED",
        terminal: "use a token of that role: see `polynym token list` on the server",
        page: HIGHER_ROLE,
    },
    Advice {
        reason: "TENANT_DENIED",
        terminal: "name a --tenant of the token: `polynym token list` shows the callers of a \
                   server's --credentials",
        page: "Choose a tenant of your credential: “Tenants” lists them.",
    },
    Advice {
        reason: "IDENTITY_NOT_FOUND",
        terminal: "check the spelling and the --tenant; `polynym user get` shows what a user has",
        page: "The user no longer has it: look at the identities of the user.",
    },
    Advice { reason: "USER_NOT_FOUND", terminal: "check the id and the --tenant", page: "" },
    Advice { reason: "BULK_CHANGE_NOT_FOUND", terminal: "check the id and the --tenant", page: "" },
    Advice {
        reason: "TOO_MANY_BULK_CHANGES",
        terminal: "wait until one ends, or stop one: see `polynym bulk list`",
        page: "Wait until a bulk change of the tenant ends, or stop one.",
    },
    Advice {
        reason: "TENANT_NOT_FOUND",
        terminal: "create it with `polynym tenant set --create`",
        page: "",
    },
    Advice {
        reason: "IDENTITY_TAKEN",
        terminal: "see its owner with `polynym user get`: it may be another person",
        page: "Look at its owner. Move the identity, or merge the users if they are one person.",
    },
    Advice {
        reason: "USER_DISABLED",
        terminal: "see it with --show-disabled, or enable it with `polynym user enable`",
        page: "",
    },
    Advice {
        reason: "USER_DELETED",
        terminal: "restore it with `polynym user undelete` first",
        page: "Restore the user first.",
    },
    Advice { reason: "USER_MERGED", terminal: "", page: "Open the user that it was merged into." },
    Advice {
        reason: "IDENTITY_HELD",
        terminal: "wait until then, or end the hold with `polynym identity release`",
        page: "Wait until then, or have an admin release the hold.",
    },
    Advice {
        reason: "IDENTITY_RESERVED",
        terminal: "choose another; `polynym tenant get` lists the reserved handles",
        page: "Choose another. The policies of the tenant list them.",
    },
    Advice {
        reason: "IDENTITY_CONFUSABLE",
        terminal: "choose one that looks different; `polynym identity normalize` shows its \
                   skeleton",
        page: "Choose one that looks different.",
    },
    Advice {
        reason: "LAST_IDENTITY",
        terminal: "",
        page: "Link another identity first. The policies of the tenant require one.",
    },
    Advice {
        reason: "PRIMARY_IDENTITY",
        terminal: "",
        page: "Make another one of its kind primary first.",
    },
    Advice {
        reason: "MERGE_CONFLICT",
        terminal: "see what differs with --dry-run, and choose a side with --conflicts",
        page: "",
    },
    Advice {
        reason: "ETAG_MISMATCH",
        terminal: "read it again with `polynym user get` or `polynym tenant get`, and use its new \
                   etag",
        page: "Nothing was changed by you. Apply your change again if it is still right.",
    },
    Advice { reason: "LIMIT_EXCEEDED", terminal: "", page: "Remove something first." },
    Advice { reason: "MESSAGE_TOO_LARGE", terminal: "", page: "Shorten it." },
    Advice { reason: "OVERLOADED", terminal: "try again later", page: "" },
    Advice {
        reason: "DISK_FULL",
        terminal: "free space on the disk of the store, or move the store to a larger one",
        page: "The administrator of the server must free space on its disk.",
    },
    Advice {
        reason: "RATE_LIMITED",
        terminal: "try again in a second, or have the caller's `rate` raised in the server's \
                   --credentials",
        page: "",
    },
    Advice { reason: "DEADLINE", terminal: "try again, with a longer --timeout", page: "" },
    Advice { reason: "STORE_UNAVAILABLE", terminal: "try again later", page: "" },
    Advice { reason: "SERVER_OUTDATED", terminal: "use a server of a later version", page: "" },
    Advice {
        reason: "CLOCK_IN_DOUBT",
        terminal: "correct the clocks of the server and of its store",
        page: "",
    },
    Advice { reason: "RULES_CHANGING", terminal: "try again later", page: "" },
    Advice { reason: "INTERNAL", terminal: "see the server's log", page: "" },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_reason_with_advice_is_documented() {
        let (_, errors) = include_str!("../../../docs/api.md").split_once("## Errors").unwrap();
        let rows = errors.lines().filter(|line| line.starts_with("| `"));
        let cells = rows.filter_map(|line| line.split('|').nth(2));
        let documented: BTreeSet<_> = cells.flat_map(|cell| cell.split('`')).collect();
        let reasons: BTreeSet<_> = ADVICE.iter().map(|advice| advice.reason).collect();
        assert_eq!(reasons.difference(&documented).collect::<Vec<_>>(), [&""; 0]);
        assert_eq!(reasons.len(), ADVICE.len());
    }
}

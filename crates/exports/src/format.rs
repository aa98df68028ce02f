//! The formats.

/// A format of another user directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// The JSON of a realm of Keycloak, with its users.
    Keycloak,
    /// The JSON of `firebase auth:export`.
    Firebase,
    /// The JSON Lines of an export job of Auth0.
    Auth0,
    /// The list of identities of Ory Kratos as JSON.
    Kratos,
    /// CSV with the columns of Okta.
    Okta,
    /// The CSV file of users of Microsoft Entra.
    Entra,
    /// LDIF, with entries of `inetOrgPerson` or of Active Directory.
    Ldif,
    /// vCard 3.0 or 4.0.
    Vcard,
}

impl ExportFormat {
    /// All formats, with their names for arguments and for people.
    pub const ALL: [(Self, &str, &str); 8] = [
        (Self::Keycloak, "keycloak", "users of Keycloak"),
        (Self::Firebase, "firebase", "users of Firebase"),
        (Self::Auth0, "auth0", "users of Auth0"),
        (Self::Kratos, "kratos", "identities of Ory Kratos"),
        (Self::Okta, "okta", "a table of Okta"),
        (Self::Entra, "entra", "a table of Microsoft Entra"),
        (Self::Ldif, "ldif", "LDIF"),
        (Self::Vcard, "vcard", "vCards"),
    ];

    /// The name for arguments, such as `keycloak`.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The content of a file in words, such as "users of Keycloak".
    pub fn words(self) -> &'static str {
        self.row().2
    }

    /// Whether a file is a table, whose columns can be mapped as well.
    pub const fn is_table(self) -> bool {
        matches!(self, Self::Okta | Self::Entra)
    }

    fn row(self) -> (Self, &'static str, &'static str) {
        let found = Self::ALL.into_iter().find(|(format, ..)| *format == self);
        found.unwrap_or(Self::ALL[0])
    }
}

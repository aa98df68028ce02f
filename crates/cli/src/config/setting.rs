//! The declaration of settings.

/// A setting. Its key gives the names of its flag and its environment variable.
#[derive(Debug)]
pub struct Setting {
    /// The key in the file: `max_calls`.
    pub key: &'static str,
    /// The placeholder of the value in the help; empty for a switch.
    pub placeholder: &'static str,
    /// The default as text; empty for none, or for one that the machine decides.
    pub default: &'static str,
    /// The doc comment.
    pub doc: &'static str,
}

impl Setting {
    /// The name of the flag without its hyphens in front: `max-calls`.
    pub fn flag(&self) -> String {
        self.key.replace('_', "-")
    }

    /// The environment variable: `POLYNYM_MAX_CALLS`.
    pub fn variable(&self) -> String {
        format!("POLYNYM_{}", self.key.to_uppercase())
    }

    /// The help: the doc comment without its period.
    pub fn help(&self) -> &'static str {
        self.doc.trim().trim_end_matches('.')
    }

    /// Whether the setting is on or off, and off by default.
    pub fn is_switch(&self) -> bool {
        self.placeholder.is_empty()
    }
}

/// Declares a set of settings: a struct with a field for each setting.
///
/// The name of a field is the key in the file, and gives the names of the flag and the environment
/// variable. Its doc comment is the help. After `=` follow the placeholder of the value, the
/// default as text, and the function that parses the text; or `switch`, for a setting that is on or
/// off, and off by default. A field without `=` is another set. The set has a function with the
/// name of the setting, which returns its [`Setting`].
///
/// After the struct, `prepare` names a function that runs before the values are parsed, `replace` a
/// [`Setting`] instead of that of a contained set with the same key, and `check` a function that
/// validates the parsed values together.
#[macro_export]
macro_rules! settings {
    (
        $(#[$meta:meta])*
        pub struct $set:ident {
            $($(#[doc = $doc:literal])+ pub $field:ident: $type:ty $(= $value:tt)?,)+
        }
        $(prepare = $prepare:path;)?
        $(replace = $replace:path;)?
        $(check = $check:path;)?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        #[allow(rustdoc::bare_urls, reason = "the comments of fields are help texts, too")]
        pub struct $set {
            $($(#[doc = $doc])+ pub $field: $type,)+
        }

        #[allow(rustdoc::bare_urls, reason = "the comments of fields are help texts, too")]
        impl $set {
            $($crate::config::settings!(@setting $field ($($doc)+) $($value)?);)+
        }

        impl $crate::config::Settings for $set {
            fn all() -> Vec<&'static $crate::config::Setting> {
                [$($crate::config::settings!(@list $field $type $(, $value)?)),+]
                    .into_iter()
                    .flatten()
                    $(.map(|one| if one.key == $replace.key { &$replace } else { one }))?
                    .collect()
            }

            fn parse(values: &mut $crate::config::Values<'_>) -> Option<Self> {
                $($prepare(values);)?
                // All are parsed before the first error returns, so that all errors are reported.
                $(let $field = $crate::config::settings!(@parse values $field $type $(, $value)?);)+
                #[allow(unused_mut, reason = "a set without a check")]
                let mut set = Self { $($field: $field?,)+ };
                $($check(&mut set, values);)?
                Some(set)
            }
        }
    };
    (@setting $field:ident $doc:tt) => {};
    (@setting $field:ident $doc:tt switch) => {
        $crate::config::settings!(@setting $field $doc ("", "false", parse::switch));
    };
    (@setting $field:ident ($($doc:literal)+) ($value:literal, $default:literal, $_:expr)) => {
        $(#[doc = $doc])+
        pub fn $field() -> &'static $crate::config::Setting {
            &$crate::config::Setting {
                key: stringify!($field),
                placeholder: $value,
                default: $default,
                doc: concat!($($doc),+),
            }
        }
    };
    (@list $field:ident $set:ty) => { <$set as $crate::config::Settings>::all() };
    (@list $field:ident $type:ty, $value:tt) => { vec![Self::$field()] };
    (@parse $values:ident $field:ident $set:ty) => {
        <$set as $crate::config::Settings>::parse($values)
    };
    (@parse $values:ident $field:ident $type:ty, switch) => {
        $values.get(Self::$field(), $crate::config::parse::switch)
    };
    (@parse $values:ident $field:ident $type:ty, ($_:literal, $__:literal, $parse:expr)) => {
        $values.get(Self::$field(), $parse)
    };
}

pub use settings;

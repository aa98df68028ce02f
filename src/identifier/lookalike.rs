//! Look-alikes, by UTS 39: which handles mix scripts, and what a handle that is not all ASCII
//! reserves so that nobody can take a name that looks the same.

use std::fmt;

use unicode_normalization::UnicodeNormalization;
use unicode_security::mixed_script::AugmentedScriptSet;
use unicode_security::skeleton;

use super::Kind;

/// The key that a handle outside ASCII reserves beside its own. It never resolves.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Guard {
    skeleton: String,
}

impl Guard {
    /// The kind word of a guard whose skeleton is not all ASCII.
    pub const LOOKALIKE: &'static str = "lookalike";

    /// The guard of a handle in canonical form; also of one that is its own skeleton, since another
    /// may have the same.
    pub(super) fn of_handle(handle: &str) -> Option<Self> {
        (!handle.is_ascii()).then(|| Guard { skeleton: skeleton_of(handle) })
    }

    /// Wraps a skeleton that was read back from a store. It is trusted, not checked.
    pub const fn from_skeleton(skeleton: String) -> Self {
        Guard { skeleton }
    }

    /// The skeleton of the handle: UTS 39's mapping of its characters outside ASCII, in lower case
    /// and NFC.
    pub fn skeleton(&self) -> &str {
        &self.skeleton
    }

    /// The kind word under which the skeleton is reserved: `handle` where it is all ASCII, so
    /// that it meets the handles themselves, else [`Guard::LOOKALIKE`].
    pub fn kind_word(&self) -> &'static str {
        if self.skeleton.is_ascii() { Kind::Handle.as_str() } else { Guard::LOOKALIKE }
    }
}

/// Shows nothing of the value: values are personal data.
impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guard({}, …)", self.kind_word())
    }
}

/// The mapping of UTS 39 section 4, but ASCII stays as it is: `joe1` and `joel` are two names.
/// Some characters map to capitals (U+3007 to `O`), which no handle has: hence the lower case.
fn skeleton_of(handle: &str) -> String {
    let mut mapped = String::with_capacity(handle.len());
    for c in handle.nfd() {
        if c.is_ascii() {
            mapped.push(c);
        } else {
            mapped.extend(skeleton(c.encode_utf8(&mut [0; 4])));
        }
    }
    mapped.make_ascii_lowercase();
    mapped.nfc().collect()
}

/// Whether a name mixes scripts beyond the highly restrictive level of UTS 39 section 5.2: more
/// than one script, and not Latin with the scripts of Chinese, Japanese or Korean. Which
/// characters a handle may have at all is PRECIS's to say.
pub(super) fn mixes_scripts(name: &str) -> bool {
    if name.is_ascii() || !AugmentedScriptSet::for_str(name).is_empty() {
        return false;
    }
    let latin = AugmentedScriptSet::for_char('a');
    let mut others = AugmentedScriptSet::default();
    for set in name.chars().map(AugmentedScriptSet::for_char) {
        let mut common = set;
        common.intersect_with(latin);
        if common.is_empty() {
            others.intersect_with(set);
        }
    }

    !(others.hanb || others.jpan || others.kore)
}

//! Look-alikes by UTS 39: the check of mixed scripts, and guards, which non-ASCII handles reserve
//! against names that look the same.

use std::fmt;

use unicode_normalization::UnicodeNormalization;
use unicode_security::mixed_script::AugmentedScriptSet;
use unicode_security::skeleton;

use super::kind::Kind;

/// The additional key that a non-ASCII handle reserves. It never resolves.
///
/// ```
/// use polynym_identifier::{Identifier, RawIdentifier};
///
/// // All letters are Cyrillic.
/// let handle = Identifier::parse(RawIdentifier::Handle("ѕсоре"))?;
/// assert_eq!(handle.guard().unwrap().skeleton(), "scope");
/// # Ok::<(), polynym_identifier::Rejection>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Guard {
    skeleton: String,
}

impl Guard {
    /// The kind word of a guard with a non-ASCII skeleton.
    pub const LOOKALIKE: &'static str = "lookalike";

    /// The guard of a canonical handle, even if it is its own skeleton: another may have the same.
    /// A final sigma counts as a sigma: they are one letter.
    pub(super) fn of_handle(handle: &str) -> Option<Self> {
        let skeleton = || skeleton_of(&handle.replace(FINAL_SIGMA, SIGMA));
        (!handle.is_ascii()).then(|| Guard { skeleton: skeleton() })
    }

    /// Wraps a stored skeleton without checks.
    pub const fn from_skeleton(skeleton: String) -> Self {
        Guard { skeleton }
    }

    /// The skeleton of the handle: its non-ASCII characters mapped by UTS 39, in lower case and
    /// NFC.
    pub fn skeleton(&self) -> &str {
        &self.skeleton
    }

    /// The kind word of the reserved key: `handle` for an ASCII skeleton, so that it conflicts with
    /// the handle itself, else [`Guard::LOOKALIKE`].
    pub fn kind_word(&self) -> &'static str {
        if self.skeleton.is_ascii() { Kind::Handle.as_str() } else { Guard::LOOKALIKE }
    }
}

/// Shows only the kind word: values are personal data.
impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Guard({}, …)", self.kind_word())
    }
}

const FINAL_SIGMA: char = 'ς';
const SIGMA: &str = "σ";

/// The mapping of UTS 39, section 4, except that ASCII is unchanged: `joe1` and `joel` are
/// distinct. Some characters map to capitals (U+3007 to `O`), which handles lack: hence the lower
/// case.
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

/// Whether a name mixes scripts beyond the highly restrictive level of UTS 39, section 5.2: several
/// scripts, other than Latin with those of Chinese, Japanese or Korean. PRECIS decides on single
/// characters.
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

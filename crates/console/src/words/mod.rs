//! Words of pages in other languages.
//!
//! The English texts of templates are the keys. A page in another language is rendered with marks
//! around its data, and then each of its texts is looked up in the catalogue of the language.

mod catalogue;
pub mod filters;
mod html;
pub mod language;
mod marks;
mod page;
mod pattern;
mod sentence;
mod text;

pub use language::Language;
pub use marks::Html;

/// A rendered page in a language.
pub fn translated<E>(
    language: Language,
    render: impl FnOnce() -> Result<String, E>,
) -> Result<String, E> {
    if language == Language::English {
        return render();
    }
    let page = marks::marking(render)?;
    Ok(page::translated(&page, language))
}

//! The languages of pages.

use std::future::Future;

use http::HeaderMap;
use http::header::ACCEPT_LANGUAGE;

/// A language of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// The language of the templates.
    #[default]
    English,
    German,
    /// For tests: words and data in brackets, and what the catalogue lacks in question marks.
    Brackets,
}

/// The languages that people choose from: their codes (BCP 47), and their own names.
pub const CHOICES: [(&str, &str); 2] = [("en", "English"), ("de", "Deutsch")];

tokio::task_local! {
    /// The language of the request that is answered.
    static CURRENT: Language;
}

impl Language {
    /// The language with this code.
    pub fn of(code: &str) -> Option<Self> {
        match code {
            "en" => Some(Self::English),
            "de" => Some(Self::German),
            "x-brackets" => Some(Self::Brackets),
            _ => None,
        }
    }

    /// The code.
    pub const fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::German => "de",
            Self::Brackets => "x-brackets",
        }
    }

    /// The language that a browser prefers.
    pub fn preferred(headers: &HeaderMap) -> Self {
        let languages = headers.get(ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        let mut best = (0.0, Self::English);
        for range in languages.unwrap_or_default().split(',') {
            let (tag, weight) = range.split_once(';').unwrap_or((range, "q=1"));
            let weight = weight.trim().strip_prefix("q=").and_then(|text| text.parse().ok());
            let primary = tag.trim().split('-').next().unwrap_or_default().to_ascii_lowercase();
            let known = CHOICES.iter().any(|(code, _)| *code == primary);
            if let (true, Some(language), Some(weight)) = (known, Self::of(&primary), weight)
                && weight > best.0
            {
                best = (weight, language);
            }
        }
        best.1
    }
}

/// The language of the request that is answered; English outside of one.
pub fn current() -> Language {
    CURRENT.try_with(|language| *language).unwrap_or_default()
}

/// Makes a language the current one while `answer` is computed.
pub async fn scope<T>(language: Language, answer: impl Future<Output = T>) -> T {
    CURRENT.scope(language, answer).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_that_which_the_browser_prefers() {
        let language = |languages: &'static str| {
            let value = http::HeaderValue::from_static(languages);
            Language::preferred(&[(ACCEPT_LANGUAGE, value)].into_iter().collect()).code()
        };
        assert_eq!(language("de-AT,de;q=0.9,en-US;q=0.8"), "de");
        assert_eq!(language("en-US,en;q=0.9,de;q=0.8"), "en");
        assert_eq!(language("fr, de;q=0.5"), "de");
        assert_eq!(language("fr;q=0.9, en;q=0.3, DE-ch;q=0.8"), "de");
        for other in ["fr", "", "*", "x-brackets", "de;q=0", "de;q=x"] {
            assert_eq!(language(other), "en", "{other}");
        }
        assert_eq!(Language::preferred(&HeaderMap::new()), Language::English);
        for (code, _) in CHOICES {
            assert_eq!(Language::of(code).map(Language::code), Some(code));
        }
    }
}

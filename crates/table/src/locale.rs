//! How people of a language and region write numbers, dates, yes and no.

/// The order of a date's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DateOrder {
    /// `31.01.2026`
    DayFirst,
    /// `01/31/2026`
    MonthFirst,
    /// `2026-01-31`, `2026/1/31`
    YearFirst,
}

/// The conventions of a language, as CLDR 46 and spreadsheets have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locale {
    /// The code of the language, such as `de`.
    pub language: &'static str,
    /// The sign before the decimals.
    pub decimal: char,
    /// The sign between groups of three digits; none if the language's is not known.
    pub grouping: Option<char>,
    /// The order of a date's parts; none if the language's regions differ.
    pub date_order: Option<DateOrder>,
    /// Words for yes and for no, in lower case.
    words: [&'static [&'static str]; 2],
}

const ENGLISH: [&[&str]; 2] = [&["true", "yes", "y", "1", "x"], &["false", "no", "n", "0"]];

const fn locale(
    language: &'static str,
    decimal: char,
    date_order: DateOrder,
    words: [&'static [&'static str]; 2],
) -> Locale {
    let grouping = Some(if decimal == ',' { '.' } else { ',' });
    Locale { language, decimal, grouping, date_order: Some(date_order), words }
}

/// Without a locale: decimal points, dates of ISO 8601, English words.
pub const NEUTRAL: Locale =
    Locale { language: "en", decimal: '.', grouping: None, date_order: None, words: ENGLISH };

use DateOrder::{DayFirst, MonthFirst, YearFirst};

const LOCALES: [(&str, Locale); 25] = [
    ("en", Locale { grouping: Some(','), ..NEUTRAL }),
    ("en-US", locale("en", '.', MonthFirst, ENGLISH)),
    ("en-GB", locale("en", '.', DayFirst, ENGLISH)),
    ("de", locale("de", ',', DayFirst, [&["ja", "j", "wahr"], &["nein", "falsch"]])),
    ("de-CH", locale("de", '.', DayFirst, [&["ja", "j", "wahr"], &["nein", "falsch"]])),
    ("fr", locale("fr", ',', DayFirst, [&["oui", "o", "vrai"], &["non", "faux"]])),
    ("es", locale("es", ',', DayFirst, [&["sí", "si", "s", "verdadero"], &["no", "falso"]])),
    ("es-MX", locale("es", '.', DayFirst, [&["sí", "si", "s", "verdadero"], &["no", "falso"]])),
    ("it", locale("it", ',', DayFirst, [&["sì", "si", "s", "vero"], &["no", "falso"]])),
    ("pt", locale("pt", ',', DayFirst, [&["sim", "s", "verdadeiro"], &["não", "nao", "falso"]])),
    ("nl", locale("nl", ',', DayFirst, [&["ja", "j", "waar"], &["nee", "onwaar"]])),
    ("pl", locale("pl", ',', DayFirst, [&["tak", "t", "prawda"], &["nie", "fałsz"]])),
    ("cs", locale("cs", ',', DayFirst, [&["ano", "a", "pravda"], &["ne", "nepravda"]])),
    ("da", locale("da", ',', DayFirst, [&["ja", "j", "sand"], &["nej", "falsk"]])),
    ("nb", locale("nb", ',', DayFirst, [&["ja", "j", "sann"], &["nei", "usann"]])),
    ("sv", locale("sv", ',', YearFirst, [&["ja", "j", "sant"], &["nej", "falskt"]])),
    ("fi", locale("fi", ',', DayFirst, [&["kyllä", "k", "tosi"], &["ei", "epätosi"]])),
    ("hu", locale("hu", ',', YearFirst, [&["igen", "i", "igaz"], &["nem", "hamis"]])),
    ("ro", locale("ro", ',', DayFirst, [&["da", "d", "adevărat"], &["nu", "fals"]])),
    ("tr", locale("tr", ',', DayFirst, [&["evet", "e", "doğru"], &["hayır", "yanlış"]])),
    ("ru", locale("ru", ',', DayFirst, [&["да", "истина"], &["нет", "ложь"]])),
    ("uk", locale("uk", ',', DayFirst, [&["так", "істина"], &["ні", "хибність"]])),
    ("ja", locale("ja", '.', YearFirst, [&["はい"], &["いいえ"]])),
    ("zh", locale("zh", '.', YearFirst, [&["是"], &["否"]])),
    ("ko", locale("ko", '.', YearFirst, [&["예", "네"], &["아니요", "아니오"]])),
];

impl Locale {
    /// The locale with this tag, such as `de` or `en-GB`; without an entry of its own, a region has
    /// that of its language.
    ///
    /// # Errors
    /// The language is not known.
    pub fn parse(tag: &str) -> Result<Self, String> {
        let find = |tag: &str| LOCALES.iter().find(|(known, _)| known.eq_ignore_ascii_case(tag));
        let tag = tag.replace('_', "-");
        let language = tag.split('-').next().unwrap_or_default();
        let found = find(&tag).or_else(|| find(language)).map(|(_, locale)| *locale);
        found.ok_or_else(|| {
            let known = LOCALES.map(|(tag, _)| tag).join(", ");
            format!("--locale {tag}: not known; known are {known}")
        })
    }

    /// The tags of the locales.
    pub fn tags() -> impl Iterator<Item = &'static str> {
        LOCALES.iter().map(|(tag, _)| *tag)
    }

    /// The languages, each once.
    pub fn languages() -> impl Iterator<Item = &'static str> {
        let own = LOCALES.iter().filter(|(tag, locale)| *tag == locale.language);
        own.map(|(tag, _)| *tag)
    }

    /// Yes or no, in the language or in English.
    pub fn yes_or_no(&self, cell: &str) -> Option<bool> {
        let word = cell.to_lowercase();
        let has = |n: usize| self.words[n].iter().chain(ENGLISH[n]).any(|known| *known == word);
        match (has(0), has(1)) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locales_are_found_by_language_and_region() {
        assert_eq!(Locale::parse("de_AT").unwrap().decimal, ',');
        assert_eq!(Locale::parse("de-CH").unwrap().decimal, '.');
        assert_eq!(Locale::parse("en-us").unwrap().date_order, Some(MonthFirst));
        assert!(Locale::parse("tlh").unwrap_err().contains("en-GB"));
        assert_eq!(Locale::languages().count(), 21);
    }

    #[test]
    fn yes_and_no_are_words_of_the_language() {
        let german = Locale::parse("de").unwrap();
        for (word, wanted) in [
            ("Ja", Some(true)),
            ("WAHR", Some(true)),
            ("nein", Some(false)),
            ("0", Some(false)),
            ("x", Some(true)),
            ("oui", None),
        ] {
            assert_eq!(german.yes_or_no(word), wanted, "{word}");
        }
    }
}

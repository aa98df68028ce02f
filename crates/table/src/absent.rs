//! Words that programs write into cells without a value.

/// The words for which a cell counts as empty, as pandas, R, SQL and JSON write them, and the dates
/// of MySQL that are none. `Null` is a surname.
const WORDS: [&str; 15] = [
    "NULL",
    "null",
    "(null)",
    "<null>",
    "\\N",
    "NaN",
    "nan",
    "N/A",
    "n/a",
    "<NA>",
    "None",
    "0000-00-00",
    "0000-00-00 00:00:00",
    "00.00.0000",
    "00/00/0000",
];
/// The errors of spreadsheets, in the languages of Excel.
const ERRORS: &[&str] = &[
    "#N/A",
    "#REF!",
    "#VALUE!",
    "#NAME?",
    "#DIV/0!",
    "#NUM!",
    "#NULL!",
    "#SPILL!",
    "#CALC!",
    "#FIELD!",
    "#BLOCKED!",
    "#CONNECT!",
    "#UNKNOWN!",
    "#BUSY!",
    "#GETTING_DATA",
    "#ERROR!",
    "Err:502",
    "Err:504",
    "Err:508",
    "Err:509",
    "Err:522",
    "#NV",
    "#BEZUG!",
    "#WERT!",
    "#ZAHL!",
    "#ÜBERLAUF!",
    "#KALK!",
    "#VALEUR!",
    "#NOM?",
    "#NOMBRE!",
    "#NUL!",
    "#PROPAGATION!",
    "#¡REF!",
    "#¡VALOR!",
    "#¿NOMBRE?",
    "#¡DIV/0!",
    "#¡NUM!",
    "#¡NULO!",
    "#RIF!",
    "#VALORE!",
    "#NOME?",
    "#N/D",
    "#VALOR!",
    "#NÚM!",
    "#NULO!",
    "#VERW!",
    "#WAARDE!",
    "#NAAM?",
    "#DEEL/0!",
    "#N/B",
    "#GETAL!",
    "#LEEG!",
    "#REFERENS!",
    "#VÄRDEFEL!",
    "#NAMN?",
    "#DIVISION/0!",
    "#SAKNAS!",
    "#OGILTIGT!",
    "#ADR!",
    "#ARG!",
    "#NAZWA?",
    "#DZIEL/0!",
    "#N/D!",
    "#LICZBA!",
    "#ССЫЛКА!",
    "#ЗНАЧ!",
    "#ИМЯ?",
    "#ДЕЛ/0!",
    "#Н/Д",
    "#ЧИСЛО!",
    "#ПУСТО!",
];

/// The words for which a cell counts as empty.
#[derive(Clone, Debug)]
pub struct Absent(Vec<String>);

impl Default for Absent {
    fn default() -> Self {
        Self(WORDS.iter().chain(ERRORS).map(|word| (*word).to_owned()).collect())
    }
}

impl Absent {
    /// These words alone, separated by commas; none if `text` is empty.
    pub fn parse(text: &str) -> Self {
        let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
        Self(words.map(str::to_owned).collect())
    }

    /// Whether this is one of the usual words.
    pub fn is_usual(text: &str) -> bool {
        WORDS.contains(&text) || is_error(text)
    }

    /// Whether a cell, without white space around it, has such a word.
    pub fn has(&self, cell: &str) -> bool {
        self.0.iter().any(|word| word == cell)
    }
}

/// Whether a cell, without white space around it, is an error of a spreadsheet.
pub fn is_error(cell: &str) -> bool {
    ERRORS.contains(&cell)
}

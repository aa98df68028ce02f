//! How a table is read, as the form has it: a choice for each column, and what holds for all.

use std::collections::BTreeMap;

use polynym_table::{FewValues, FieldColumns, MapFile, Meanings};

use crate::form::Form;

/// The choice of a column without a field.
const IGNORED: &str = "";
const GIVEN_NAME: &str = "given_name";
const DISPLAY_NAME: &str = "display_name";
const FAMILY_NAME: &str = "family_name";
const SOCIAL: &str = "social";
const ATTRIBUTE: &str = "attributes";
const STATE: &str = "state";

/// How a table is read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The name of the encoding; empty for UTF-8, or what a byte order mark says.
    pub encoding: String,
    /// The name of the separator; empty to find it.
    pub separator: String,
    /// The tag of the locale; empty to guess it.
    pub locale: String,
    /// The region of national phone numbers; empty to guess it.
    pub region: String,
    /// Whether only international phone numbers are taken.
    pub is_strict: bool,
    /// The words that mean no value; `None` for the default ones.
    pub absent: Option<String>,
    /// The choice for each column; none to guess them.
    pub columns: Vec<ColumnSetting>,
    /// The meanings of values that are not understood by themselves.
    pub values: Meanings,
}

/// The choice for a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnSetting {
    /// One of [`ColumnSetting::CHOICES`].
    pub choice: String,
    /// The name of the attribute, or of the provider.
    pub name: String,
    /// The sign between several values; empty if a cell has one.
    pub list: String,
}

impl ColumnSetting {
    /// The choices, and what they say.
    pub const CHOICES: [(&str, &str); 20] = [
        (IGNORED, "Ignore"),
        ("email", "Email"),
        ("phone", "Phone"),
        ("handle", "Handle"),
        ("url", "Profile URL"),
        (SOCIAL, "Account"),
        (DISPLAY_NAME, "Display name"),
        (GIVEN_NAME, "Name, first part"),
        (FAMILY_NAME, "Name, last part"),
        ("region", "Country of phone numbers"),
        ("attributes", "Attribute"),
        ("attributes:int", "Attribute: whole number"),
        ("attributes:double", "Attribute: number"),
        ("attributes:bool", "Attribute: yes or no"),
        ("attributes:time", "Attribute: time"),
        ("attributes:list", "Attribute: list of texts"),
        ("state", "State"),
        ("create_time", "Created"),
        ("update_time", "Changed"),
        ("user_id", "User id"),
    ];

    /// The choice for a field such as `email[;]` or `attributes.age:int`.
    fn of(field: &str) -> Self {
        let (field, list) = match field.split_once('[') {
            Some((field, rest)) => (field, rest.trim_end_matches(']')),
            None => (field, ""),
        };
        let (choice, name) = match field.split_once('.') {
            Some((ATTRIBUTE, rest)) => match rest.rsplit_once(':') {
                Some((name, "string")) => (ATTRIBUTE.to_owned(), name),
                Some((name, kind)) => (format!("{ATTRIBUTE}:{kind}"), name),
                None => (ATTRIBUTE.to_owned(), rest),
            },
            Some((kind, name)) => (kind.to_owned(), name),
            None => (field.to_owned(), ""),
        };
        Self { choice, name: name.to_owned(), list: list.to_owned() }
    }

    /// The field, and the place of the column among those of one text.
    fn field(&self) -> Option<(String, u8)> {
        let list = if self.list.is_empty() { String::new() } else { format!("[{}]", self.list) };
        let field = match (&*self.choice, self.choice.split_once(':')) {
            (IGNORED, _) => return None,
            (GIVEN_NAME, _) => return Some((DISPLAY_NAME.to_owned(), 0)),
            (FAMILY_NAME, _) => return Some((DISPLAY_NAME.to_owned(), 2)),
            (SOCIAL | ATTRIBUTE, _) => format!("{}.{}", self.choice, self.name),
            (_, Some((kind, value_type))) => format!("{kind}.{}:{value_type}", self.name),
            (plain, None) => plain.to_owned(),
        };
        Some((field + &list, 1))
    }
}

impl Settings {
    /// The settings of a map file for columns with these names.
    pub fn of(file: &MapFile, names: &[String]) -> Self {
        let mut columns = vec![ColumnSetting::default(); names.len()];
        let position = |name: &String| names.iter().position(|known| known == name);
        for (field, own) in &file.map {
            let own = match own {
                FieldColumns::One(name) => std::slice::from_ref(name),
                FieldColumns::Several(names) => names,
            };
            let last = own.len() - 1;
            for (n, column) in own.iter().enumerate() {
                let mut setting = ColumnSetting::of(field);
                if setting.choice == DISPLAY_NAME && last > 0 {
                    let parts = [(0, GIVEN_NAME), (last, FAMILY_NAME)];
                    let part = parts.into_iter().find(|(position, _)| *position == n);
                    setting.choice = part.map_or(DISPLAY_NAME, |(_, part)| part).to_owned();
                }
                if let Some(place) = position(column).and_then(|n| columns.get_mut(n)) {
                    *place = setting;
                }
            }
        }
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        Self {
            encoding: text(&file.encoding),
            separator: text(&file.separator),
            locale: text(&file.locale),
            region: text(&file.region),
            is_strict: file.phones.as_deref() == Some("strict"),
            absent: file.absent.clone(),
            columns,
            values: file.values.clone(),
        }
    }

    /// These settings with those in a form, which may have a part of the columns. Columns are
    /// guessed again if others are found.
    pub fn with(&self, form: &Form) -> Self {
        let text = |name: &str, own: &str| {
            if form.has(name) { form.get(name).to_owned() } else { own.to_owned() }
        };
        let encoding = match text("encoding", &self.encoding) {
            same if same.eq_ignore_ascii_case(&self.encoding) => self.encoding.clone(),
            other => other,
        };
        let separator = text("separator", &self.separator);
        let keeps_columns = encoding == self.encoding && separator == self.separator;
        let mut columns = if keeps_columns { self.columns.clone() } else { Vec::new() };
        for (n, column) in columns.iter_mut().enumerate() {
            if form.has(&format!("field_{n}")) {
                let get = |part: &str| form.get(&format!("{part}_{n}")).to_owned();
                *column =
                    ColumnSetting { choice: get("field"), name: get("name"), list: get("list") };
            }
        }
        let absent = match form.get("absence") {
            "own" => Some(form.get("absent").to_owned()),
            "" => self.absent.clone(),
            _ => None,
        };
        Self {
            encoding,
            separator,
            locale: text("locale", &self.locale),
            region: text("region", &self.region).to_uppercase(),
            is_strict: text("phones", if self.is_strict { "strict" } else { "" }) == "strict",
            absent,
            columns,
            values: self.values.clone(),
        }
    }

    /// These settings with the meanings of values in a form, and what is said of those that a
    /// column does not have; empty without any. `kind` is what a column has.
    pub fn with_values(
        &self,
        form: &Form,
        kind: impl Fn(&str) -> Option<FewValues>,
    ) -> (Self, String) {
        let (mut settings, mut error) = (self.clone(), String::new());
        let chosen = form.all("column").zip(form.all("value")).zip(form.all("meaning"));
        for ((column, value), text) in chosen {
            let Some(kind) = kind(column) else { continue };
            let own = settings.values.entry(column.to_owned()).or_default();
            match text.trim() {
                "" => drop(own.remove(value)),
                text => match kind.meaning(text) {
                    Some(meaning) => drop(own.insert(value.to_owned(), meaning)),
                    None => error = unknown(kind, text),
                },
            }
        }
        settings.values.retain(|_, own| !own.is_empty());
        (settings, error)
    }

    /// The meanings of values. Those of states hold only while the column has states.
    fn values_of(&self, names: &[String]) -> Meanings {
        let mut values = self.values.clone();
        for (setting, name) in self.columns.iter().zip(names) {
            if let Some(own) = values.get_mut(name).filter(|_| setting.choice != STATE) {
                own.retain(|_, meaning| FewValues::State.meaning(meaning).is_none());
            }
        }
        values.retain(|_, own| !own.is_empty());
        values
    }

    /// The map file for columns with these names.
    pub fn map_file(&self, names: &[String]) -> MapFile {
        let mut fields: BTreeMap<String, Vec<(u8, &String)>> = BTreeMap::new();
        for (setting, name) in self.columns.iter().zip(names) {
            if let Some((field, place)) = setting.field() {
                fields.entry(field).or_default().push((place, name));
            }
        }
        let columns = |mut own: Vec<(u8, &String)>| {
            own.sort_by_key(|(place, _)| *place);
            match &*own {
                [(_, only)] => FieldColumns::One((*only).clone()),
                several => {
                    let names = several.iter().map(|(_, name)| (*name).clone());
                    FieldColumns::Several(names.collect())
                }
            }
        };
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        MapFile {
            encoding: text(&self.encoding),
            separator: text(&self.separator),
            locale: text(&self.locale),
            region: text(&self.region),
            phones: self.is_strict.then(|| "strict".to_owned()),
            absent: self.absent.clone(),
            map: fields.into_iter().map(|(field, own)| (field, columns(own))).collect(),
            values: self.values_of(names),
        }
    }
}

/// The error for a text that is no value of a column of this kind.
fn unknown(kind: FewValues, text: &str) -> String {
    match kind {
        FewValues::Country => format!("{text} is no country: write its name, such as Germany."),
        FewValues::State => format!("{text}: a user is active or disabled."),
        FewValues::YesOrNo => format!("{text}: choose yes or no."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_and_map_files_have_the_same_content() {
        let text = r#"
            encoding = "windows-1252"
            locale = "de"
            phones = "strict"
            [map]
            "email[,]" = ["Mail", "Mail 2"]
            "attributes.umsatz:double" = "Umsatz"
            "attributes.ort" = "Ort"
            "social.github" = "Git"
            display_name = ["Vorname", "Zweitname", "Nachname"]
            [values.Ort]
            D = "DE"
        "#;
        let file = MapFile::parse(text).unwrap();
        let names = ["Nachname", "Mail", "Mail 2", "Umsatz", "Ort", "Git", "Zweitname", "Vorname"];
        let names = names.map(str::to_owned);
        let settings = Settings::of(&file, &names);
        assert_eq!(settings.columns[0].choice, FAMILY_NAME);
        assert_eq!(settings.columns[3].choice, "attributes:double");
        assert_eq!(settings.map_file(&names), file);
    }

    #[test]
    fn meanings_of_states_end_with_the_choice_of_a_state() {
        let text = "[map]\nstate = \"Status\"\n[values.Status]\nACTIVE = \"active\"\n";
        let (file, names) = (MapFile::parse(text).unwrap(), ["Status".to_owned()]);
        let mut settings = Settings::of(&file, &names);
        assert_eq!(settings.map_file(&names).values, file.values);
        settings.columns[0].choice = "attributes".to_owned();
        settings.columns[0].name = "status".to_owned();
        assert!(settings.map_file(&names).values.is_empty());
    }
}

//! The mapping of the columns of a table to the fields of users.

mod definitions;
mod meanings;
mod once;

use std::borrow::Cow;

use csv::StringRecord;
use polynym_identifier::{Dialling, dialling, is_international};
use polynym_proto::v1::identifier::Kind;
use polynym_proto::v1::{AttributeValue, Identifier, Identity, Phone, Social, User};

use crate::absent::{Absent, is_error};
use crate::columns::{Columns, listed, pairs};
use crate::field::{Field, ValueType};
use crate::formula::text_of;
use crate::locale::{Locale, NEUTRAL};
use crate::regions::region;
use crate::subject::{check_single, is_distinguished_name};
use crate::value::{float, items, rounded, state, value};
use crate::{numbers, times};
pub use definitions::Definitions;
use meanings::MeaningsOf;
pub use meanings::{FewValues, Meanings};
use once::check;

/// Which telephone numbers are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phones {
    /// Numbers in international form, and those in national form of the row's region.
    #[default]
    National,
    /// Numbers in international form alone.
    Strict,
}

/// How cells are read.
#[derive(Clone, Debug)]
pub struct Options {
    /// How people write numbers, dates, yes and no.
    pub locale: Locale,
    /// The region of telephone numbers in national form, unless the row has one; may be empty.
    pub region: String,
    /// Which telephone numbers are taken.
    pub phones: Phones,
    /// The words for which a cell counts as empty.
    pub absent: Absent,
    /// The definitions of the tenant.
    pub definitions: Definitions,
    /// Whether users lose what a row lacks, so that an error of a spreadsheet is no empty cell.
    pub replaces: bool,
    /// The meanings of values that are not understood by themselves.
    pub meanings: Meanings,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            locale: NEUTRAL,
            region: String::new(),
            phones: Phones::default(),
            absent: Absent::default(),
            definitions: Definitions::default(),
            replaces: false,
            meanings: Meanings::new(),
        }
    }
}

/// A mapping of columns to fields.
#[derive(Clone, Debug)]
pub struct Mapping {
    entries: Vec<Entry>,
    region: Option<usize>,
    /// The field by which rows find their users.
    key: Option<String>,
    options: Options,
    meanings: MeaningsOf,
}

/// The columns of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    field: Field,
    /// Separates the values in a cell.
    separator: Option<char>,
    columns: Vec<usize>,
}

/// A user, and where it was in its row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MappedUser {
    /// The user.
    pub user: User,
    /// The column of each identity.
    pub identity_columns: Vec<usize>,
    /// How each telephone number is dialled, with its region.
    pub phones: Vec<(String, Dialling)>,
    /// Whether the row names the region of its numbers in national form.
    pub has_region: bool,
    /// The columns of cells with a word for no value, and the words.
    pub absent: Vec<(usize, String)>,
}

/// Why a row has no user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellError {
    /// The column of the cell.
    pub column: usize,
    /// The fault and its remedy.
    pub message: String,
}

impl CellError {
    /// The error with the name of its column.
    pub fn text(&self, columns: &Columns) -> String {
        format!("{}: {}", columns.name(self.column), self.message)
    }
}

impl Mapping {
    /// Parses mappings such as `email=E-Mail,handle=Login` for these columns. A part without a
    /// field belongs to the column before it: `display_name=Name, First,email=Mail`. Without
    /// mappings, columns with names of fields have these.
    ///
    /// # Errors
    /// A mapping is wrong: in words.
    pub fn new(maps: &[String], columns: &Columns, options: Options) -> Result<Self, String> {
        let mut entries = Vec::new();
        for map in maps {
            for pair in pairs(map, columns) {
                let entry = Entry::parse(&pair, columns);
                entries.push(entry.map_err(|error| format!("--map {pair}: {error}"))?);
            }
        }
        if maps.is_empty() {
            entries = Entry::by_name(columns)?;
        }
        if entries.is_empty() {
            return Err(format!(
                "no column has the name of a field: --map FIELD=COLUMN,... says which is which, \
                 and --inspect proposes it; the file has {columns}"
            ));
        }
        check(entries.iter().map(|entry| (&entry.field, &*entry.columns)), columns)?;
        let (regions, entries): (Vec<Entry>, _) =
            entries.into_iter().partition(|entry| entry.field == Field::Region);
        let region = regions.first().and_then(|entry| entry.columns.first().copied());
        let meanings = MeaningsOf::new(&options.meanings, columns);
        Ok(Self { entries, region, key: None, options, meanings })
    }

    /// The field of a column, in words; empty if it has none.
    pub fn field_of(&self, column: usize) -> String {
        let has = |entry: &&Entry| entry.columns.contains(&column);
        match self.entries.iter().find(has) {
            Some(entry) => entry.field.name(),
            None if self.region == Some(column) => Field::Region.name(),
            None => String::new(),
        }
    }

    /// The names of the fields that an import can change in users who exist.
    pub fn fields(&self) -> Vec<String> {
        self.entries.iter().filter_map(|entry| entry.field.changeable()).collect()
    }

    /// Sets the field by which rows find their users, from the name of a field, of an attribute or
    /// of a column. Returns its name.
    ///
    /// # Errors
    /// No column has it: in words.
    pub fn set_key(&mut self, name: &str, columns: &Columns) -> Result<String, String> {
        let column = columns.find(name).ok();
        let has = |entry: &&Entry| {
            let field = entry.field.changeable().unwrap_or_default();
            field == name
                || field.strip_prefix("attributes.") == Some(name)
                || column.is_some_and(|column| entry.columns == [column])
        };
        self.key = self.entries.iter().find(has).and_then(|entry| entry.field.changeable());
        self.key.clone().ok_or_else(|| {
            format!(
                "--match {name}: no column is mapped to it; mapped are {}",
                self.fields().join(", ")
            )
        })
    }

    /// The user of a row.
    ///
    /// # Errors
    /// A cell cannot be read as its field.
    pub fn user(&self, row: &StringRecord) -> Result<MappedUser, CellError> {
        let mut reading = Reading { mapping: self, row, mapped: MappedUser::default() };
        for entry in &self.entries {
            reading.read(entry)?;
        }
        Ok(reading.mapped)
    }
}

impl Entry {
    fn parse(pair: &str, columns: &Columns) -> Result<Self, String> {
        let (field, column) = pair.split_once('=').ok_or("must be of the form FIELD=COLUMN")?;
        let (field, separator) = listed(field.trim())?;
        let field = Field::parse(field)?;
        let whole = columns.find(column);
        let columns = match whole {
            Err(_) if field.is_text() && column.contains('+') => {
                column.split('+').map(|part| columns.find(part)).collect::<Result<_, _>>()?
            }
            whole => vec![whole?],
        };
        if separator.is_some() && !field.has_list() {
            return Err("has one value: a separator is for identities and lists".to_owned());
        }
        Ok(Self { field, separator, columns })
    }

    /// The columns that have names of fields.
    fn by_name(columns: &Columns) -> Result<Vec<Self>, String> {
        let mut entries = Vec::new();
        for name in columns.names() {
            // Exports have names such as email[;].
            let Ok((field, separator)) = listed(name) else { continue };
            if let Some(field) = Field::named(field) {
                let separator = separator.filter(|_| field.has_list());
                entries.push(Self { field, separator, columns: vec![columns.find(name)?] });
            }
        }
        Ok(entries)
    }
}

/// A row that is read.
struct Reading<'m> {
    mapping: &'m Mapping,
    row: &'m StringRecord,
    mapped: MappedUser,
}

impl<'m> Reading<'m> {
    fn read(&mut self, entry: &Entry) -> Result<(), CellError> {
        let mut texts = Vec::new();
        for column in &entry.columns {
            texts.extend(self.cell(*column)?.map(|cell| (*column, cell)));
        }
        let Some((column, cell)) = texts.first() else { return Ok(()) };
        let (column, cell) = (*column, &**cell);
        let error = |message| CellError { column, message };
        if entry.field.is_identity() {
            return self.identities(entry, column, cell);
        }
        let trimmed = cell.trim();
        let (user, options) = (&mut self.mapped.user, &self.mapping.options);
        let locale = &options.locale;
        match &entry.field {
            Field::UserId => user.user_id = trimmed.to_owned(),
            Field::DisplayName => user.display_name = joined(&texts),
            Field::Attribute(name, value_type) => {
                let known = value_type.or_else(|| options.definitions.types.get(name).copied());
                let value_type = known.unwrap_or(ValueType::String);
                let is_key = self.mapping.key == entry.field.changeable();
                if is_key && value_type == ValueType::String && numbers::is_float(trimmed) {
                    return Err(error(float(trimmed)));
                }
                let text = match (value_type, &*texts) {
                    (ValueType::String, [_]) => cell.to_owned(),
                    (ValueType::String, several) => joined(several),
                    _ => trimmed.to_owned(),
                };
                let kind = value(value_type, &text, entry.separator, locale);
                let kind = Some(kind.map_err(error)?);
                user.attributes.insert(name.clone(), AttributeValue { kind });
            }
            Field::State => user.set_state(state(trimmed).map_err(error)?),
            Field::CreateTime => {
                user.create_time = Some(times::parse(trimmed, locale).map_err(error)?)
            }
            Field::UpdateTime => {
                user.update_time = Some(times::parse(trimmed, locale).map_err(error)?)
            }
            _ => {}
        }
        Ok(())
    }

    /// The text of a cell; none if it has no value.
    fn cell(&mut self, column: usize) -> Result<Option<Cow<'m, str>>, CellError> {
        let cell = self.row.get(column).unwrap_or_default();
        let (cell, options) = match self.mapping.meanings.of(column, cell.trim()) {
            Some(meaning) => (meaning, &self.mapping.options),
            None => (cell, &self.mapping.options),
        };
        let trimmed = cell.trim();
        if options.replaces && is_error(trimmed) {
            let message = format!(
                "{trimmed} is an error of a spreadsheet, and would remove what the user has: \
                 correct its formula, or leave the cell empty"
            );
            return Err(CellError { column, message });
        }
        let is_absent = options.absent.has(trimmed);
        if is_absent && self.mapped.absent.iter().all(|(own, _)| *own != column) {
            self.mapped.absent.push((column, trimmed.to_owned()));
        }
        Ok((!trimmed.is_empty() && !is_absent).then(|| text_of(cell)))
    }

    fn identities(&mut self, entry: &Entry, column: usize, cell: &str) -> Result<(), CellError> {
        let error = |message| CellError { column, message };
        if numbers::is_rounded(cell.trim()) {
            return Err(error(rounded(cell.trim())));
        }
        // The name of an entry of a directory has commas, and its parts belong to many.
        let is_one = matches!(entry.field, Field::Social(_)) && is_distinguished_name(cell);
        match entry.separator.filter(|_| !is_one) {
            Some(separator) => {
                for item in items(cell, separator) {
                    self.identity(&entry.field, column, item)?;
                }
                Ok(())
            }
            None => {
                // A social account's id may begin or end with a space.
                let text = match entry.field {
                    Field::Social(_) => cell,
                    _ => cell.trim(),
                };
                check_single(&entry.field, text).map_err(error)?;
                self.identity(&entry.field, column, text)
            }
        }
    }

    fn identity(&mut self, field: &Field, column: usize, text: &str) -> Result<(), CellError> {
        let error = |message| CellError { column, message };
        if numbers::is_rounded(text) {
            return Err(error(rounded(text)));
        }
        if numbers::is_float(text) {
            return Err(error(float(text)));
        }
        let owned = text.to_owned();
        let kind = match field {
            Field::Email => Kind::Email(owned),
            Field::Handle => Kind::Handle(owned),
            Field::Url => Kind::Url(owned),
            Field::Social(provider) => {
                Kind::Social(Social { provider: provider.clone(), subject: owned })
            }
            _ => Kind::Phone(self.phone(column, owned)?),
        };
        let identifier = Some(Identifier { kind: Some(kind) });
        self.mapped.user.identities.push(Identity { identifier, ..Identity::default() });
        self.mapped.identity_columns.push(column);
        Ok(())
    }

    fn phone(&mut self, column: usize, number: String) -> Result<Phone, CellError> {
        if is_international(&number) {
            self.mapped.phones.push((String::new(), Dialling::International));
            return Ok(Phone { number, region: String::new() });
        }
        if self.mapping.options.phones == Phones::Strict {
            let advice = "write it with + and its calling code, or omit --phones strict";
            let message = format!("the number is in national form: {advice}");
            return Err(CellError { column, message });
        }
        let region = self.region()?;
        if let Some(dialling) = dialling(&number, &region) {
            self.mapped.phones.push((region.clone(), dialling));
        }
        Ok(Phone { number, region })
    }

    /// The region of the row's telephone numbers; may be empty.
    fn region(&mut self) -> Result<String, CellError> {
        let default = &self.mapping.options.region;
        let Some(column) = self.mapping.region else { return Ok(default.clone()) };
        let cell = self.cell(column)?;
        let name = cell.as_deref().unwrap_or_default().trim();
        self.mapped.has_region = !name.is_empty();
        if name.is_empty() {
            return Ok(default.clone());
        }
        let message = format!("no country is known by the name {name}: write its code, such as DE");
        region(name).map(str::to_owned).ok_or(CellError { column, message })
    }
}

/// The texts of several columns in one.
fn joined(texts: &[(usize, Cow<'_, str>)]) -> String {
    let words = texts.iter().map(|(_, text)| text.trim());
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use polynym_proto::v1::attribute_value::Kind as ValueKind;

    use super::*;

    fn columns() -> Columns {
        let names = vec!["E-Mail", "Login", "Age", "Tel", "Name, First", "Last", "Land"];
        Columns::new(&StringRecord::from(names))
    }

    fn mapping(maps: &[&str], options: Options) -> Result<Mapping, String> {
        let maps: Vec<_> = maps.iter().map(ToString::to_string).collect();
        Mapping::new(&maps, &columns(), options)
    }

    fn read(maps: &[&str], row: &[&str]) -> Result<MappedUser, CellError> {
        let options = Options { region: "DE".to_owned(), ..Options::default() };
        mapping(maps, options).unwrap().user(&StringRecord::from(row.to_vec()))
    }

    fn kinds(mapped: &MappedUser) -> Vec<&Kind> {
        let identifiers = mapped.user.identities.iter().filter_map(|one| one.identifier.as_ref());
        identifiers.filter_map(|identifier| identifier.kind.as_ref()).collect()
    }

    #[test]
    fn columns_map_to_fields() {
        let maps = ["email=E-Mail,handle=Login", "attributes.age:int=Age"];
        let mapped = read(&maps, &["a@example.com", "N/A", " 7 ", "", "", "", ""]).unwrap();
        assert_eq!(kinds(&mapped), [&Kind::Email("a@example.com".to_owned())]);
        assert_eq!(mapped.identity_columns, [0]);
        assert_eq!(mapped.absent, [(1, "N/A".to_owned())]);
        assert_eq!(mapped.user.attributes["age"].kind, Some(ValueKind::IntValue(7)));
        let error = read(&maps, &["", "", "x", "", "", "", ""]).unwrap_err();
        assert_eq!(error, CellError { column: 2, message: "is not a whole number".to_owned() });
    }

    #[test]
    fn names_may_have_commas_and_be_joined() {
        let maps = ["display_name=Name, First+Last,email[,]=E-Mail"];
        let mapped = read(&maps, &["a@b.c, d@e.f", "", "", "", " Jo ", "Smith", ""]).unwrap();
        assert_eq!(mapped.user.display_name, "Jo Smith");
        assert_eq!(mapped.user.identities.len(), 2);
    }

    #[test]
    fn the_row_has_the_region_of_its_numbers() {
        let maps = ["phone=Tel,region=Land"];
        let row = |number, land| ["", "", "", number, "", "", land];
        let mapped = read(&maps, &row("01 234 56 78", "Österreich")).unwrap();
        assert_eq!(mapped.phones, [("AT".to_owned(), Dialling::National)]);
        let mapped = read(&maps, &row("612 34 56 78", "")).unwrap();
        assert_eq!(mapped.phones, [("DE".to_owned(), Dialling::WithoutPrefix)]);
        let mapped = read(&maps, &row("030 1234567", "NULL")).unwrap();
        assert_eq!(mapped.phones, [("DE".to_owned(), Dialling::National)]);
        assert_eq!(mapped.absent, [(6, "NULL".to_owned())]);
        let mapped = read(&maps, &row("+34612345678", "Atlantis")).unwrap();
        assert_eq!(mapped.phones, [(String::new(), Dialling::International)]);
        for number in [
            "tel:+33-6-12-34-56-78",
            "(+33) 6 12 34 56 78",
            "\u{202a}+33 6 12 34 56 78\u{202c}",
            "\u{2068}+33 6 12 34 56 78\u{2069}",
            "\u{200e}+33 6 12 34 56 78",
            "tel:06-12-34-56-78;phone-context=+33",
        ] {
            let strict = Options { phones: Phones::Strict, ..Options::default() };
            let strict = mapping(&maps, strict).unwrap();
            let cells = StringRecord::from(row(number, "DE").to_vec());
            let mapped = strict.user(&cells).unwrap();
            assert_eq!(mapped.phones, [(String::new(), Dialling::International)], "{number:?}");
        }
        assert!(read(&maps, &row("0301234567", "Atlantis")).unwrap_err().message.contains("code"));
        for rounded in ["4.479E+11", "1,7E+11"] {
            let error = read(&maps, &row(rounded, "")).unwrap_err().message;
            assert!(error.contains("Excel turned"), "{error}");
        }
        let strict = Options { phones: Phones::Strict, ..Options::default() };
        let strict = mapping(&maps, strict).unwrap();
        let row = StringRecord::from(row("030 1234567", "DE").to_vec());
        assert!(strict.user(&row).unwrap_err().message.contains("national form"));
    }

    #[test]
    fn values_have_the_meaning_that_was_chosen() {
        let maps = ["phone=Tel,region=Land,state=Login,attributes.vip:bool=Age"];
        let maps: Vec<_> = maps.map(str::to_owned).into();
        let of = |column: &str, own: &[(&str, &str)]| {
            let own = own.iter().map(|(cell, meaning)| (cell.to_string(), meaning.to_string()));
            (column.to_owned(), own.collect())
        };
        let meanings = Meanings::from([
            of("Land", &[("D", "DE"), ("unknown", "")]),
            of("Login", &[("locked", "disabled")]),
            of("No such column", &[("x", "y")]),
        ]);
        let options = Options { meanings, ..Options::default() };
        let mapping = Mapping::new(&maps, &columns(), options).unwrap();
        let row = StringRecord::from(vec!["", "locked", "x", "030 1234567", "", "", " D"]);
        let user = mapping.user(&row).unwrap();
        assert_eq!(user.phones, [("DE".to_owned(), Dialling::National)]);
        assert_eq!(user.user.state(), polynym_proto::v1::State::Disabled);
        let few = mapping.few_values();
        assert_eq!(few.len(), 3);
        let special: Vec<_> = mapping.special_values(&row, &few).into_iter().collect();
        assert_eq!(special, [(1, "locked"), (6, "D")]);
        let row = StringRecord::from(vec!["", "active", "maybe", "", "", "", "A"]);
        let special: Vec<_> = mapping.special_values(&row, &few).into_iter().collect();
        assert_eq!(special, [(2, "maybe"), (6, "A")]);
        assert_eq!(FewValues::Country.meaning("Germany").as_deref(), Some("DE"));
        assert_eq!(FewValues::Country.meaning("D"), None);
    }

    #[test]
    fn several_values_need_a_separator() {
        let row = |mail, login| [mail, login, "", "", "", "", ""];
        for (maps, row, part) in [
            (["handle=Login"], row("", "a;b"), "--map 'handle[;]=COLUMN'"),
            (["email=E-Mail"], row("a@b.c,d@e.f", ""), "--map 'email[,]=COLUMN'"),
            (["social.x=Login"], row("", "a,b"), "--map 'social.x[,]=COLUMN'"),
            (["handle=Login"], row("", "Lee, Ann"), "display_name"),
            (["handle=Login"], row("", "CN=Lee,DC=com"), "--map social.PROVIDER=COLUMN"),
            (["handle=Login"], row("", "1047.0"), "made a number of this id"),
            (["social.x[;]=Login"], row("", "583231;583.0"), "made a number of this id"),
        ] {
            let error = read(&maps, &row).unwrap_err().message;
            assert!(error.contains(part), "{error}");
            assert!(part.starts_with("--map") || !error.contains("[,]"), "{error}");
        }
    }

    #[test]
    fn a_key_is_no_number_of_a_program() {
        let maps = ["attributes.number=Login".to_owned(), "attributes.level:int=Age".to_owned()];
        let mut mapping = Mapping::new(&maps, &columns(), Options::default()).unwrap();
        let row = |number| StringRecord::from(vec!["", number, "3.0", "", "", "", ""]);
        assert!(mapping.user(&row("1047.0")).is_ok(), "a version, perhaps");
        assert_eq!(mapping.set_key("number", &columns()).unwrap(), "attributes.number");
        assert!(mapping.user(&row("1047.0")).unwrap_err().message.contains("of this id"));
        assert!(mapping.user(&row("1047")).is_ok());
    }

    #[test]
    fn a_distinguished_name_is_one_account() {
        let name = r"CN=Lee\, Ann,OU=Staff,DC=example,DC=com";
        for map in ["social.ldap=Login", "social.ldap[,]=Login"] {
            let mapped = read(&[map], &["", name, "", "", "", "", ""]).unwrap();
            let account = Social { provider: "ldap".to_owned(), subject: name.to_owned() };
            assert_eq!(kinds(&mapped), [&Kind::Social(account)]);
        }
    }

    #[test]
    fn errors_of_spreadsheets_remove_nothing() {
        let maps = ["handle=Login,attributes.age:int=Age".to_owned()];
        let row = StringRecord::from(vec!["", "joe", "#BEZUG!", "", "", "", ""]);
        let read = |replaces| {
            let options = Options { replaces, ..Options::default() };
            Mapping::new(&maps, &columns(), options).unwrap().user(&row)
        };
        assert_eq!(read(false).unwrap().absent, [(2, "#BEZUG!".to_owned())]);
        let error = read(true).unwrap_err();
        assert!(error.column == 2 && error.message.contains("#BEZUG!"), "{error:?}");
    }

    #[test]
    fn wrong_mappings_are_named() {
        for (map, wanted) in [
            ("email=Mail", "no such column"),
            ("mail=E-Mail", "no such field"),
            ("x", "FIELD="),
            ("display_name=Login,display_name=Last", "twice"),
            ("attributes.a=Login,attributes.a:int=Age", "twice"),
            ("email=E-Mail,email=E-Mail", "twice"),
            ("display_name[;]=Last", "one value"),
            ("email[ab]=E-Mail", "one sign"),
        ] {
            let error = mapping(&[map], Options::default()).unwrap_err();
            assert!(error.contains(wanted), "{map}: {error}");
        }
        assert!(mapping(&[], Options::default()).unwrap_err().contains("--inspect"));
    }

    #[test]
    fn columns_with_names_of_fields_need_no_mapping() {
        let names = StringRecord::from(vec!["email", "Display Name", "attributes.team", "Note"]);
        let mapping = Mapping::new(&[], &Columns::new(&names), Options::default()).unwrap();
        let row = StringRecord::from(vec!["a@example.com", "Joe", "search ", "x"]);
        let user = mapping.user(&row).unwrap().user;
        assert_eq!((user.identities.len(), &*user.display_name), (1, "Joe"));
        let team = ValueKind::StringValue("search ".to_owned());
        assert_eq!(user.attributes["team"].kind, Some(team));
    }
}

//! How to read a table: the options of the command line, then those of the map file.

use std::collections::BTreeMap;

use polynym_proto::v1::{AttributeType, Tenant};
use polynym_table::{
    Absent, Given, Locale, MapFile, Options, Phones, ValueType, encoding, separator,
};

use super::arguments::{PhonesArg, TableArgs};
use crate::failure::Failure;
use crate::files::failure;

/// What is given about a table.
pub fn given(args: &TableArgs) -> Result<Given, Failure> {
    let file = match &args.map_file {
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|error| failure(path, error))?;
            MapFile::parse(&text).map_err(|error| failure(path, error))?
        }
        None => MapFile::default(),
    };
    parse(args, &file).map_err(Failure::Usage)
}

fn parse(args: &TableArgs, file: &MapFile) -> Result<Given, String> {
    let either = |arg: &Option<String>, own: &Option<String>| arg.clone().or_else(|| own.clone());
    let encoding = either(&args.encoding, &file.encoding);
    let separator = either(&args.separator, &file.separator);
    let locale = either(&args.locale, &file.locale);
    let phones = match (args.phones, file.phones.as_deref()) {
        (Some(PhonesArg::Strict), _) | (None, Some("strict")) => Phones::Strict,
        (Some(PhonesArg::National), _) | (None, Some("national") | None) => Phones::National,
        (None, Some(other)) => return Err(format!("phones {other}: must be national or strict")),
    };
    let absent = either(&args.absent, &file.absent);
    let options = Options {
        region: either(&args.region, &file.region).unwrap_or_default(),
        phones,
        absent: absent.map_or_else(Absent::default, |words| Absent::parse(&words)),
        ..Options::default()
    };
    Ok(Given {
        encoding: encoding.map(|name| encoding::named(&name)).transpose()?,
        separator: separator.map(|name| separator::named(&name)).transpose()?,
        locale: locale.map(|tag| Locale::parse(&tag)).transpose()?,
        maps: if args.maps.is_empty() { file.maps() } else { args.maps.clone() },
        options,
    })
}

/// The types of a tenant's attributes.
pub fn types(tenant: &Tenant) -> BTreeMap<String, ValueType> {
    let definitions = tenant.policies.iter().flat_map(|policies| &policies.attribute_definitions);
    let typed = definitions.filter_map(|definition| {
        let value_type = match definition.r#type() {
            AttributeType::String => ValueType::String,
            AttributeType::Int => ValueType::Int,
            AttributeType::Double => ValueType::Double,
            AttributeType::Bool => ValueType::Bool,
            AttributeType::Time => ValueType::Time,
            AttributeType::List => ValueType::List,
            AttributeType::Unspecified => return None,
        };
        Some((definition.name.clone(), value_type))
    });
    typed.collect()
}

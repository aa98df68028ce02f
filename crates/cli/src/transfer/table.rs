//! How to read a table: the options of the command line, then those of the map file.

use polynym_table::{Given, MapFile};

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
    let phones = args.phones.map(|phones| match phones {
        PhonesArg::Strict => "strict".to_owned(),
        PhonesArg::National => "national".to_owned(),
    });
    let file = MapFile {
        encoding: args.encoding.clone().or(file.encoding),
        separator: args.separator.clone().or(file.separator),
        locale: args.locale.clone().or(file.locale),
        region: args.region.clone().or(file.region),
        phones: phones.or(file.phones),
        absent: args.absent.clone().or(file.absent),
        map: file.map,
        values: file.values,
    };
    let given = file.given().map_err(Failure::Usage)?;
    let maps = if args.maps.is_empty() { given.maps } else { args.maps.clone() };
    Ok(Given { maps, ..given })
}

//! Users in tables: CSV files as spreadsheets and other programs write them, for the command line
//! and every other way in.
//!
//! A file is read in steps: [`encoding`] gives its text, [`separator`] finds its columns, `rows`
//! reads its cells, and a [`Mapping`] makes a user of a row. [`inspect()`] proposes the mapping.

mod absent;
mod columns;
pub mod encoding;
mod export;
mod field;
mod formula;
mod inspect;
mod line_breaks;
pub mod locale;
mod map_file;
mod mapping;
mod numbers;
mod quotes;
mod regions;
mod rows;
pub mod separator;
mod subject;
mod times;
mod value;

pub use absent::Absent;
pub use columns::{Columns, REJECT_COLUMNS};
pub use export::ExportColumns;
pub use field::{Field, ValueType};
pub use formula::{csv_row, guarded, without_marks};
pub use inspect::{InspectedColumn, Inspection, SpecialValues, Tally, inspect};
pub use locale::Locale;
pub use map_file::{FieldColumns, Given, MapFile};
pub use mapping::{
    CellError, Definitions, FewValues, MappedUser, Mapping, Meanings, Options, Phones,
};
pub use regions::{likely_region, region, region_names};
pub use rows::{MAX_ROW_BYTES, Row, Rows, Table};

//! The parts of a mapping as the command line has it.

use crate::columns::Columns;

/// The parts `FIELD=COLUMNS` of a mapping.
pub fn pairs(map: &str, columns: &Columns) -> Vec<String> {
    if map.split_once('=').is_some_and(|(_, column)| columns.has(column)) {
        return vec![map.to_owned()];
    }
    let mut pairs: Vec<String> = Vec::new();
    let mut depth = 0_i32;
    let parts = map.split(|c: char| {
        depth += i32::from(c == '[') - i32::from(c == ']');
        c == ',' && depth <= 0
    });
    for part in parts {
        match pairs.last_mut() {
            Some(last) if !part.contains('=') => {
                last.push(',');
                last.push_str(part);
            }
            _ => pairs.push(part.to_owned()),
        }
    }
    pairs
}

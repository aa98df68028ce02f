//! The rejects of a table by column and reason, with the first rows of each, so that people can
//! mend them in place. The memory is bounded.

use std::collections::BTreeMap;

use csv::StringRecord;

/// The groups that are told apart, and the rows of a group.
const MAX_GROUPS: usize = 50;
const MAX_ROWS: usize = 10;
/// The bytes of a row that is kept to be mended.
const MAX_ROW_BYTES: usize = 4 << 10;
/// The characters of a message that is kept.
const MAX_MESSAGE_CHARS: usize = 300;

/// The rejects of one column for one reason.
#[derive(Clone, Debug, Default)]
pub struct RejectGroup {
    /// The position of the column; none if the rejects are about whole rows.
    pub column: Option<usize>,
    /// The name of the column; empty without one.
    pub name: String,
    /// The reason, such as `IDENTIFIER_INVALID`.
    pub reason: String,
    /// The number of rejects.
    pub count: u64,
    /// The first ones.
    pub rows: Vec<RejectedRow>,
}

/// A rejected row, or a row that was imported without an identity.
#[derive(Clone, Debug)]
pub struct RejectedRow {
    /// The line in the file.
    pub line: i64,
    /// What is wrong.
    pub message: String,
    /// The id of the user who has the identity; empty if none has.
    pub owner: String,
    /// Whether the row was imported without the identity.
    pub is_imported: bool,
    /// The cells; none if the row is too long to be mended here.
    pub cells: Option<StringRecord>,
}

impl RejectedRow {
    /// The text of a cell; empty if the row has no such column, or is too long.
    pub fn cell(&self, column: usize) -> &str {
        self.cells.as_ref().and_then(|cells| cells.get(column)).unwrap_or_default()
    }

    /// The row with other texts in some columns; none if it is too long to be mended here.
    pub fn mended(&self, changes: &BTreeMap<usize, String>) -> Option<StringRecord> {
        let cells = self.cells.as_ref()?;
        let last = changes.last_key_value().map_or(0, |(column, _)| column + 1);
        let cell = |n: usize| {
            changes.get(&n).map_or_else(|| cells.get(n).unwrap_or_default(), String::as_str)
        };
        Some((0..cells.len().max(last)).map(cell).collect())
    }
}

/// The groups, in the order of their first rejects.
#[derive(Debug, Default)]
pub(crate) struct Groups(Vec<RejectGroup>);

impl Groups {
    /// Adds a reject.
    pub fn add(
        &mut self,
        (column, name): (Option<usize>, &str),
        reason: &str,
        row: impl FnOnce() -> RejectedRow,
    ) {
        let is_own = |group: &RejectGroup| group.column == column && group.reason == reason;
        let found = match self.0.iter().position(is_own) {
            Some(found) => found,
            None if self.0.len() < MAX_GROUPS => {
                let (name, reason) = (name.to_owned(), reason.to_owned());
                self.0.push(RejectGroup { column, name, reason, ..RejectGroup::default() });
                self.0.len() - 1
            }
            None => return,
        };
        let group = &mut self.0[found];
        group.count += 1;
        if group.rows.len() < MAX_ROWS {
            let row = row();
            let message = row.message.chars().take(MAX_MESSAGE_CHARS).collect();
            let cells = row.cells.filter(|cells| cells.as_slice().len() <= MAX_ROW_BYTES);
            group.rows.push(RejectedRow { message, cells, ..row });
        }
    }

    /// The groups, the largest first.
    pub fn sorted(&self) -> Vec<RejectGroup> {
        let mut groups = self.0.clone();
        groups.sort_by_key(|group| std::cmp::Reverse(group.count));
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_rows_are_bounded() {
        let mut groups = Groups::default();
        let row = |cells: &str| RejectedRow {
            line: 1,
            message: "x".repeat(1_000),
            is_imported: false,
            owner: String::new(),
            cells: Some(StringRecord::from(vec![cells])),
        };
        for n in 0..100 {
            groups.add((Some(n), "name"), "INVALID", || row("cell"));
        }
        for _ in 0..20 {
            groups.add((Some(7), "name"), "INVALID", || row("cell"));
        }
        groups.add((Some(8), "name"), "INVALID", || row(&"x".repeat(5_000)));
        let sorted = groups.sorted();
        assert_eq!(sorted.len(), MAX_GROUPS);
        assert_eq!((sorted[0].column, sorted[0].count, sorted[0].rows.len()), (Some(7), 21, 10));
        assert_eq!((sorted[1].count, sorted[1].rows[1].cells.is_none()), (2, true));
        assert_eq!(sorted[0].rows[0].message.len(), MAX_MESSAGE_CHARS);
        let mended = sorted[0].rows[0].mended(&BTreeMap::from([(2, "c".to_owned())]));
        assert_eq!(mended, Some(StringRecord::from(vec!["cell", "", "c"])));
    }
}

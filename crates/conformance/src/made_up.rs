//! Made-up users and filters: the same in every run.

use polynym_directory::{NewUser, Timestamp, UserChange, Value};

/// A generator of numbers, the same in every run.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    pub fn one_of<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }

    fn value(&mut self) -> Value {
        let few = |n: usize| ["", "a", "ab", "b", "é"][n % 5].to_owned();
        match self.below(7) {
            0 => Value::String(few(self.below(5))),
            1 => Value::List((0..self.below(4)).map(|_| few(self.below(5))).collect()),
            2 => Value::Bool(self.below(2) == 0),
            3 => Value::Double(self.below(4) as f64 / 2.0),
            4 => Value::Time(Timestamp::from_millis(1_000 * self.below(3) as i64)),
            _ => Value::Int(self.below(4) as i64 - 1),
        }
    }

    fn condition(&mut self) -> String {
        let name = self.one_of(&["a", "b", "c"]);
        let values = ["0", "1", "0.5", "\"a\"", "\"\"", "true", "1970-01-01T00:00:01Z", "\"é\""];
        let value = self.one_of(&values);
        let operator = self.one_of(&["=", "!=", "<", "<=", ">", ">="]);
        match self.below(10) {
            0 => format!("attributes.{name}:*"),
            1 => format!("attributes.{name} = \"a*\""),
            2 => self.one_of(&["state = DISABLED", "state = ACTIVE", "-state = DISABLED"]).into(),
            3 => format!("display_name {operator} \"n{}\"", self.below(10)),
            _ => format!("attributes.{name} {operator} {value}"),
        }
    }

    pub fn filter(&mut self) -> String {
        let parts: Vec<_> = (0..=self.below(3)).map(|_| self.condition()).collect();
        let parts = parts.join(self.one_of(&[" AND ", " OR ", " "]));
        let other = self.condition();
        match self.below(4) {
            0 => format!("NOT ({parts}) AND {other}"),
            1 => format!("({parts}) OR {other}"),
            _ => parts,
        }
    }

    pub fn user(&mut self) -> UserChange {
        let names = ["a", "b", "c"].into_iter().filter(|_| self.below(3) > 0);
        let names: Vec<_> = names.collect();
        let attributes = names.into_iter().map(|name| (name.to_owned(), self.value())).collect();
        let display_name = format!("n{}", self.below(12));
        UserChange::Create(NewUser { attributes, display_name, ..NewUser::default() })
    }
}

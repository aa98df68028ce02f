//! The choice of the users to look up.

use prost_types::Duration as ProtoDuration;

use crate::config::Bench;

/// The users to look up, and the greatest age of answers.
pub struct Targets {
    /// The number of users.
    pub users: u64,
    /// The skew of the choice; none for an even choice.
    pub zipf: Option<Zipf>,
    /// The greatest age of an answer; none for no cache.
    pub max_staleness: Option<ProtoDuration>,
}

impl Targets {
    pub fn new(settings: &Bench) -> Self {
        let users = settings.users as u64;
        let age = Some(settings.max_staleness).filter(|age| !age.is_zero());
        Self {
            users,
            zipf: (settings.zipf > 0.0).then(|| Zipf::new(users, settings.zipf)),
            max_staleness: age.and_then(|age| age.try_into().ok()),
        }
    }

    /// The number of a user, from a random number of 0 to 1.
    pub fn pick(&self, random: f64) -> u64 {
        let user = match &self.zipf {
            Some(zipf) => zipf.rank(random),
            None => (random * self.users as f64) as u64,
        };
        user.min(self.users - 1)
    }
}

/// Ranks by Zipf's law: rank n is drawn with a chance in proportion to `1 / (n + 1)^skew`. The
/// method is that of Gray et al., "Quickly generating billion-record synthetic databases" (1994).
pub struct Zipf {
    count: f64,
    skew: f64,
    sum: f64,
    eta: f64,
}

impl Zipf {
    /// Ranks 0 to `count`, for a skew between 0 and 1.
    pub fn new(count: u64, skew: f64) -> Self {
        let chance = |n: u64| 1.0 / (n as f64).powf(skew);
        let sum: f64 = (1..=count).map(chance).sum();
        let two: f64 = (1..=2).map(chance).sum();
        let eta = (1.0 - (2.0 / count as f64).powf(1.0 - skew)) / (1.0 - two / sum);
        Self { count: count as f64, skew, sum, eta }
    }

    fn rank(&self, random: f64) -> u64 {
        let scaled = random * self.sum;
        if scaled < 1.0 {
            0
        } else if scaled < 1.0 + 0.5_f64.powf(self.skew) {
            1
        } else {
            let base = self.eta * random - self.eta + 1.0;
            (self.count * base.powf(1.0 / (1.0 - self.skew))) as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_follow_zipfs_law() {
        let (count, draws) = (100_000, 1_000_000);
        let targets =
            Targets { users: count, zipf: Some(Zipf::new(count, 0.99)), max_staleness: None };
        let ranks: Vec<_> =
            (0..draws).map(|n| targets.pick((f64::from(n) + 0.5) / f64::from(draws))).collect();
        let sum: f64 = (1..=count).map(|n| (n as f64).powf(-0.99)).sum();
        let share = |below: u64| {
            ranks.iter().filter(|rank| **rank < below).count() as f64 / f64::from(draws)
        };
        for below in [1, 2, 100, 10_000] {
            let expected = (1..=below).map(|n| (n as f64).powf(-0.99)).sum::<f64>() / sum;
            assert!((share(below) - expected).abs() < 0.02, "{below}: {}", share(below));
        }
        assert!((share(count) - 1.0).abs() < f64::EPSILON);
    }

    #[test]
    fn without_skew_all_users_are_equally_likely() {
        let targets = Targets { users: 4, zipf: None, max_staleness: None };
        let picked = [0.0, 0.24, 0.26, 0.99, 1.0].map(|random| targets.pick(random));
        assert_eq!(picked, [0, 0, 1, 3, 3]);
    }
}

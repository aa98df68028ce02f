//! Unfinished work, and paths of one machine.

/// Finds words of unfinished work, and absolute paths of one machine. The words are assembled here,
/// so that this file passes the check.
pub fn faults(path: &str, text: &str) -> Vec<String> {
    let unfinished =
        ["TO:DO", "FIX:ME", "to:do!", "un:implemented!"].map(|word| word.replace(':', ""));
    let places = ["ho:me", "ro:ot", "Us:ers", "wo:rk", "tm:p"]
        .map(|folder| format!("/{}/", folder.replace(':', "")));
    let starts = |line: &str, place: &str| {
        let before = line.find(place).map(|at| line[..at].chars().next_back());
        before.is_some_and(|before| {
            before.is_none_or(|c| !c.is_alphanumeric() && !"./-_}>".contains(c))
        })
    };

    let faults = text.lines().enumerate().flat_map(|(n, line)| {
        let words = unfinished.iter().filter(|word| line.contains(*word));
        let folders = places.iter().filter(|place| starts(line, place));
        let found =
            words.chain(folders).map(|word| format!("{path}:{}: {word} is not allowed", n + 1));
        found.collect::<Vec<_>>()
    });
    faults.collect()
}

//! The policies on the command line: a flag for each, and one for all holds.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use polynym_presentation::duration::parse_message;
use polynym_presentation::policy::{Field, POLICIES, Policy};
use polynym_proto::v1::Policies;
use prost_types::Duration;

/// Policies on the command line, and their paths.
#[derive(Clone, Debug, Default)]
pub struct GivenPolicies {
    /// The values.
    pub policies: Box<Policies>,
    /// The paths.
    pub paths: Vec<String>,
}

const HOLD: &str = "hold";

impl Args for GivenPolicies {
    fn augment_args(command: Command) -> Command {
        let help = "How long identifiers of a kind are held for their former owners: 30d, 12h; 0d \
            for no hold. Can be repeated";
        let hold = Arg::new(HOLD).long(HOLD).value_name("KIND=TIME").help(help);
        let flags = POLICIES.iter().filter(|policy| policy.hold().is_none()).map(flag);
        command.arg(hold.action(ArgAction::Append).value_parser(hold_of)).args(flags)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn flag(policy: &Policy) -> Arg {
    let meaning = policy.meaning.trim_end_matches('.');
    let arg = Arg::new(policy.path).long(policy.flag());
    match policy.field {
        Field::Switch(_) => arg
            .help(meaning)
            .value_name(policy.path.to_ascii_uppercase())
            .value_parser(["on", "off"]),
        Field::Time(_) => {
            let help = format!("{meaning} (30d, 12h)");
            arg.help(help).value_name("TIME").value_parser(parse_message)
        }
        Field::Count(_) => {
            arg.help(meaning).value_name("N").value_parser(value_parser!(i32).range(1..))
        }
    }
}

/// Parses `KIND=TIME`.
fn hold_of(text: &str) -> Result<(&'static Policy, Duration), &'static str> {
    let (kind, time) = text.split_once('=').ok_or("write KIND=TIME, as in handle=30d")?;
    let policy = Policy::find(&format!("holds.{kind}"));
    let policy = policy.ok_or("the kind must be email, handle, phone, social or url")?;
    Ok((policy, parse_message(time)?))
}

impl FromArgMatches for GivenPolicies {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = Self::default();
        for policy in POLICIES.iter().filter(|policy| policy.hold().is_none()) {
            if given.read(policy, matches).is_some() {
                given.paths.push(policy.path.to_owned());
            }
        }
        let holds = matches.get_many::<(&'static Policy, Duration)>(HOLD);
        for (policy, time) in holds.into_iter().flatten() {
            if let Field::Time(field) = policy.field {
                *field(&mut given.policies) = Some(*time);
                given.paths.push(policy.path.to_owned());
            }
        }
        Ok(given)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl GivenPolicies {
    /// Takes the value of a flag, if it is given.
    fn read(&mut self, policy: &Policy, matches: &ArgMatches) -> Option<()> {
        let policies = &mut self.policies;
        match policy.field {
            Field::Switch(field) => {
                *field(policies) = matches.get_one::<String>(policy.path)? == "on";
            }
            Field::Time(field) => *field(policies) = Some(*matches.get_one(policy.path)?),
            Field::Count(field) => *field(policies) = *matches.get_one(policy.path)?,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<GivenPolicies, clap::Error> {
        let command = GivenPolicies::augment_args(Command::new("set").no_binary_name(true));
        GivenPolicies::from_arg_matches(&command.try_get_matches_from(arguments)?)
    }

    #[test]
    fn flags_are_policies_with_their_paths() {
        let arguments =
            ["--hold=email=7d", "--verified-wins=off", "--undo-window=12h", "--inbox-limit=9"];
        let given = parsed(&arguments).unwrap();
        assert_eq!(given.paths, ["verified_wins", "undo_window", "inbox_limit", "holds.email"]);
        let seconds = |time: Option<Duration>| time.map(|time| time.seconds);
        assert_eq!(seconds(given.policies.undo_window), Some(43_200));
        assert_eq!(seconds(given.policies.holds.unwrap().email), Some(604_800));
        assert!(parsed(&[]).unwrap().paths.is_empty());
        for wrong in ["--hold=email", "--hold=mail=7d", "--verified-wins=yes", "--inbox-limit=0"] {
            assert!(parsed(&[wrong]).is_err(), "{wrong}");
        }
    }
}

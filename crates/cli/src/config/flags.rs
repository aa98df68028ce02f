//! The flags of a set of settings on the command line.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use super::client::{Bench, ChangeClient};
use super::error::SettingErrors;
use super::serve::Serve;
use super::setting::{Setting, key, variable};
use super::values::{CONFIG, Resolve, Values};

/// The flags of the settings of `C` on the command line, not parsed yet.
#[derive(Clone, Debug)]
pub struct Flags<C> {
    given: BTreeMap<&'static str, String>,
    set: PhantomData<C>,
}

impl<C: Resolve> Flags<C> {
    /// The values of the settings, from these flags, the environment and the file.
    ///
    /// # Errors
    /// All errors, including those of settings of other sets in the file.
    pub fn load(&self) -> Result<C, SettingErrors> {
        self.load_from(&|variable| Some(std::env::var_os(variable)?.to_string_lossy().into_owned()))
    }

    pub(super) fn load_from(
        &self,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<C, SettingErrors> {
        let mut values = Values::new(&self.given, environment, &known_keys());
        let resolved = C::resolve(&mut values);
        values.finish(resolved)
    }
}

/// The keys that the file may have: one file configures the server and the clients.
fn known_keys() -> Vec<String> {
    let settings = Serve::settings().into_iter().chain(Bench::settings());
    let settings = settings.chain(ChangeClient::settings());
    settings.map(|setting| key(setting.name)).collect()
}

impl<C: Resolve> FromArgMatches for Flags<C> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let names = C::settings().into_iter().map(|setting| setting.name).chain([CONFIG]);
        let given = names.filter_map(|name| Some((name, matches.get_one::<String>(name)?.clone())));
        Ok(Self { given: given.collect(), set: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.given.append(&mut Self::from_arg_matches(matches)?.given);
        Ok(())
    }
}

impl<C: Resolve> Args for Flags<C> {
    fn augment_args(command: Command) -> Command {
        let help = "TOML file with any of these settings [env: POLYNYM_CONFIG]";
        let config =
            Arg::new(CONFIG).long(CONFIG).value_name("FILE").help(help).help_heading(HEADING);
        command.args(C::settings().into_iter().map(Setting::arg)).arg(config)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

const HEADING: &str = "Settings";

impl Setting {
    fn arg(&self) -> Arg {
        let default = match self.default {
            "" => String::new(),
            default => format!("default: {default}, "),
        };
        let (variable, key) = (variable(self.name), key(self.name));
        let help = format!("{} [{default}env: {variable}, key: {key}]", self.help);
        let arg = Arg::new(self.name).long(self.name).help(help).help_heading(HEADING);
        match self.is_switch() {
            true => arg
                .value_name("true|false")
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true"),
            false => arg.value_name(self.value),
        }
    }
}

//! The flags of a set of settings on the command line.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::OnceLock;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use super::client::{Bench, ChangeClient};
use super::error::SettingErrors;
use super::setting::Setting;
use super::top::Top;
use super::values::{CONFIG, Settings, Values};

/// The flags of the settings of `S` on the command line, not parsed yet.
#[derive(Clone, Debug)]
pub struct Flags<S> {
    given: BTreeMap<&'static str, String>,
    set: PhantomData<S>,
}

impl<S: Settings> Flags<S> {
    /// The values of the settings, from these flags, the environment and the file.
    ///
    /// # Errors
    /// All errors, including those of settings of other sets in the file.
    pub fn load(&self) -> Result<S, SettingErrors> {
        self.load_from(&|variable| Some(std::env::var_os(variable)?.to_string_lossy().into_owned()))
    }

    /// The same, with this environment.
    ///
    /// # Errors
    /// As for [`Flags::load`].
    pub fn load_from(
        &self,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<S, SettingErrors> {
        Values::new(S::all(), &self.given, environment, &known_keys::<S>()).parse()
    }
}

/// The settings of the server.
static SHARED: OnceLock<Vec<&'static Setting>> = OnceLock::new();

/// Lets the file of a client have these settings, too: one file configures the server and the
/// clients. Later calls have no effect.
pub fn share_file_with(settings: Vec<&'static Setting>) {
    SHARED.get_or_init(|| settings);
}

/// The keys that the file may have.
fn known_keys<S: Settings>() -> Vec<&'static str> {
    let shared = SHARED.get().into_iter().flatten().copied();
    let clients = [ChangeClient::all(), Bench::all(), Top::all()].into_iter().flatten();
    S::all().into_iter().chain(shared).chain(clients).map(|setting| setting.key).collect()
}

impl<S: Settings> FromArgMatches for Flags<S> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = S::all().into_iter().chain([&CONFIG]).filter_map(|setting| {
            Some((setting.key, matches.get_one::<String>(&setting.flag())?.clone()))
        });
        Ok(Self { given: given.collect(), set: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.given.append(&mut Self::from_arg_matches(matches)?.given);
        Ok(())
    }
}

impl<S: Settings> Args for Flags<S> {
    fn augment_args(command: Command) -> Command {
        let names = format!("[env: {}]", CONFIG.variable());
        command.args(S::all().into_iter().map(Setting::arg)).arg(CONFIG.arg_with(&names))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl Setting {
    fn arg(&self) -> Arg {
        let default = match self.default {
            "" => String::new(),
            default => format!("default: {default}, "),
        };
        let arg = self.arg_with(&format!("[{default}env: {}, key: {}]", self.variable(), self.key));
        match self.is_switch() {
            true => arg
                .value_name("true|false")
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true"),
            false => arg,
        }
    }

    fn arg_with(&self, names: &str) -> Arg {
        let help = format!("{} {names}", self.help());
        let arg = Arg::new(self.flag()).long(self.flag()).help(help).help_heading("Settings");
        arg.value_name(self.placeholder)
    }
}

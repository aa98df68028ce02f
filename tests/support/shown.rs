//! What documents show: commands, each with what it prints.

use std::path::PathBuf;
use std::process::{Command, Output};

/// A command and what is printed below it.
#[derive(Debug, PartialEq)]
pub struct Shown {
    pub place: String,
    pub command: String,
    pub output: String,
}

/// The commands in blocks marked `console`: after `$ `, each with what stands between it and the
/// next.
pub fn shown(path: &str, text: &str) -> Vec<Shown> {
    let mut found: Vec<Shown> = Vec::new();
    let (mut inside, mut goes_on) = (false, false);
    for (n, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if !inside {
        } else if let Some(command) = line.strip_prefix("$ ") {
            found.push(Shown {
                place: format!("{path}:{}", n + 1),
                command: command.to_owned(),
                output: String::new(),
            });
            goes_on = command.ends_with('\\');
        } else if let Some(last) = found.last_mut() {
            if goes_on {
                last.command =
                    format!("{}{}", last.command.trim_end_matches('\\'), line.trim_start());
                goes_on = line.ends_with('\\');
            } else {
                last.output.push_str(&format!("{line}\n"));
            }
        }
    }
    found.iter_mut().for_each(|shown| shown.output = shown.output.trim_end().to_owned());
    found
        .iter_mut()
        .filter(|shown| !shown.output.is_empty())
        .for_each(|shown| shown.output.push('\n'));
    found
}

/// A command of the program as a shell runs it, which asks the server at `url`.
pub fn run(command: &str, url: &str) -> Output {
    assert!(command.starts_with("polynym "), "{command}: this runs polynym");
    shell(command, url)
}

/// What a shell makes of commands, of which those of the program ask the server at `url`.
pub fn shell(commands: &str, url: &str) -> Output {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_polynym"));
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().to_str().unwrap());
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", commands]).env_clear().env("PATH", path).env("POLYNYM_SERVER", url);
    shell.output().unwrap()
}

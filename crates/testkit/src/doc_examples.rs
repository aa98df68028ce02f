//! The examples in documents: commands, each with its output.

use std::process::{Command, Output};

use crate::server::program;

/// A command and the output below it.
#[derive(Debug, PartialEq)]
pub struct Example {
    pub position: String,
    pub command: String,
    pub output: String,
}

/// Returns the commands in blocks marked `console`: a command follows `$ `, its output ends at the
/// next command.
pub fn parse(path: &str, text: &str) -> Vec<Example> {
    let mut found: Vec<Example> = Vec::new();
    let (mut inside, mut continues) = (false, false);

    for (n, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if !inside {
        } else if let Some(command) = line.strip_prefix("$ ") {
            found.push(Example {
                position: format!("{path}:{}", n + 1),
                command: command.to_owned(),
                output: String::new(),
            });
            continues = command.ends_with('\\');
        } else if let Some(last) = found.last_mut() {
            if continues {
                last.command =
                    format!("{}{}", last.command.trim_end_matches('\\'), line.trim_start());
                continues = line.ends_with('\\');
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

/// Runs a command of the program in a shell, against the server at `url`.
pub fn run(command: &str, url: &str) -> Output {
    assert!(command.starts_with("polynym "), "{command}: this runs polynym");
    shell(command, url)
}

/// Runs commands in a shell; those of the program use the server at `url`.
pub fn shell(commands: &str, url: &str) -> Output {
    let path = format!("{}:/usr/bin:/bin", program().parent().unwrap().to_str().unwrap());
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", commands]).env_clear().env("PATH", path).env("POLYNYM_SERVER", url);
    shell.output().unwrap()
}

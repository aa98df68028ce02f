//! Kills: a writing process is killed, and every mutation acknowledged to it is still there.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use polynym_directory::Mutations;

use super::support::users;
use super::{FILE, open};

/// The environment variable with the folder in which the child process writes.
const FOLDER: &str = "POLYNYM_TEST_CRASH_FOLDER";
const CALLERS: usize = 16;
const KILLS: u64 = 20;

/// The child process: creates users until it is killed, and prints the number of each acknowledged
/// user.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    println!("opening");
    let store = std::sync::Arc::new(open(Path::new(&folder)).unwrap());
    let tasks = (0..CALLERS).map(|caller| {
        let store = store.clone();
        runtime.spawn(async move {
            for n in (caller..).step_by(CALLERS) {
                if !users::look_up(&*store, n).await.unwrap() {
                    store.mutate(users::creation(n)).await.unwrap();
                    println!("created {n}");
                }
            }
        })
    });
    let callers: Vec<_> = tasks.collect();
    callers.into_iter().for_each(|caller| runtime.block_on(caller).unwrap());
}

/// Starts the child, waits until it has printed `count` users, and kills it `after` that. Returns
/// the users that it printed.
fn write_and_be_killed(folder: &Path, count: usize, after: Duration) -> Vec<usize> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut text = String::new();
    while !text.contains("opening") || text.matches("created").count() < count {
        assert!(output.read_line(&mut text).unwrap() > 0, "the child ended");
    }

    sleep(after);
    child.kill().unwrap();
    let status = child.wait().unwrap();
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert!(status.code().is_none(), "the child ended by itself: {errors}");

    output.read_to_string(&mut text).unwrap();
    // The last line may be cut off.
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    complete.lines().filter_map(|line| line.strip_prefix("created ")?.parse().ok()).collect()
}

#[test]
fn acknowledged_mutations_survive_a_kill() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for kill in 0..KILLS {
        let printed = write_and_be_killed(
            folder.path(),
            kill as usize * 7 % 40,
            Duration::from_micros(kill * 37 % 90 * 100),
        );
        acknowledged.extend(printed);
        let store = open(folder.path()).unwrap();
        for n in &acknowledged {
            assert!(runtime.block_on(users::look_up(&store, *n)).unwrap(), "user {n} is lost");
        }
        let last = acknowledged.iter().max().copied().unwrap_or(0);
        let found = (0..last + 2 * CALLERS)
            .filter(|n| runtime.block_on(users::look_up(&store, *n)).unwrap())
            .count();
        assert!(
            found <= acknowledged.len() + KILLS as usize * CALLERS,
            "more users than were sent"
        );
    }

    println!("{KILLS} kills, {} users acknowledged, all found", acknowledged.len());
}

#[test]
fn a_kill_during_creation_leaves_no_store_or_a_sound_one() {
    for kill in 0..KILLS {
        let folder = tempfile::tempdir().unwrap();
        let printed = write_and_be_killed(folder.path(), 0, Duration::from_micros(kill * 400));
        let store = open(folder.path()).unwrap_or_else(|error| panic!("kill {kill}: {error}"));
        let runtime = tokio::runtime::Runtime::new().unwrap();
        for n in printed {
            assert!(runtime.block_on(users::look_up(&store, n)).unwrap(), "user {n} is lost");
        }
        runtime.block_on(store.mutate(users::creation(1_000_000))).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_of_an_open_store_holds_all_acknowledged_mutations() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path()).unwrap();
    for n in 0..60 {
        store.mutate(users::creation(n)).await.unwrap();
        if n % 6 > 0 {
            continue;
        }
        let copy = tempfile::tempdir().unwrap();
        fs::copy(folder.path().join(FILE), copy.path().join(FILE)).unwrap();
        let opened = open(copy.path()).unwrap();
        for m in 0..60 {
            assert_eq!(
                users::look_up(&opened, m).await.unwrap(),
                m <= n,
                "user {m} in a copy made after user {n}"
            );
        }
    }
}

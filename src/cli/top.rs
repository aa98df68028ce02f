//! `polynym top`: a server's metrics as a terminal screen.

mod exposition;
mod rates;
mod scraper;
mod screen;
mod table;

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use tokio::sync::mpsc;

use super::failure::Failure;
use super::output;
use crate::config::{Flags, Top};
use exposition::Scrape;
use rates::Figures;
use scraper::Scraper;

pub const EXAMPLES: &str = "\
Examples:
  polynym serve --sample --admin-listen 127.0.0.1:9464
  polynym top
  polynym top --metrics https://users.example.com:9464 --token-file ops.token
  polynym top --once --json

Keys: q, Esc or Ctrl-C ends it.";

/// The intervals that the sparklines show.
const HISTORY: usize = 120;

/// The state of the screen.
#[derive(Default)]
pub struct State {
    /// The figures of the last interval.
    figures: Figures,
    /// Calls a second, and p99 in microseconds, of the last intervals.
    history: VecDeque<(u64, u64)>,
    /// Why there is no answer, and since when.
    silence: Option<(String, Instant)>,
}

impl State {
    fn add(&mut self, figures: Figures) {
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        let p99 = figures.times.p99.unwrap_or_default() * 1e6;
        self.history.push_back((figures.calls as u64, p99 as u64));
        (self.figures, self.silence) = (figures, None);
    }

    fn note_silence(&mut self, why: String) {
        let since = self.silence.take().map_or_else(Instant::now, |(_, since)| since);
        self.silence = Some((why, since));
    }
}

pub async fn run(flags: Flags<Top>) -> Result<(), Failure> {
    let settings = flags.load()?;
    let (interval, json) = (settings.interval, settings.json);
    let is_screen = !settings.once && !json && std::io::stdout().is_terminal();
    let url = settings.metrics.to_string();
    let scraper = Scraper::new(settings)?;
    let fault = |why: String| Failure::Other(format!("{url}: {why}"));
    let first = scraper.scrape().await.map_err(fault)?;
    if is_screen {
        return watch(&scraper, first, interval).await;
    }

    let begun = Instant::now();
    tokio::time::sleep(interval).await;
    let second = scraper.scrape().await.map_err(fault)?;
    let figures = Figures::new(&first, &second, begun.elapsed());
    if json { output::print_json(&figures) } else { table::print(&figures) }
}

/// Shows the screen until a key ends it. The terminal is as before in any case.
async fn watch(scraper: &Scraper, first: Scrape, interval: Duration) -> Result<(), Failure> {
    let mut terminal = ratatui::try_init().map_err(Failure::from)?;
    let outcome = update(&mut terminal, scraper, first, interval).await;
    ratatui::restore();
    outcome
}

async fn update(
    terminal: &mut ratatui::DefaultTerminal,
    scraper: &Scraper,
    first: Scrape,
    interval: Duration,
) -> Result<(), Failure> {
    let (mut state, mut before, mut since) = (State::default(), first, Instant::now());
    let mut events = events();
    let look = async || {
        tokio::time::sleep(interval).await;
        scraper.scrape().await
    };
    let mut next = Box::pin(look());
    loop {
        terminal.draw(|frame| screen::draw(frame, &state))?;
        tokio::select! {
            key = events.recv() => match key {
                Some(event) if !ends(&event) => {}
                _ => return Ok(()),
            },
            scraped = &mut next => {
                match scraped {
                    Ok(after) => {
                        state.add(Figures::new(&before, &after, since.elapsed()));
                        (before, since) = (after, Instant::now());
                    }
                    Err(why) => state.note_silence(why),
                }
                next = Box::pin(look());
            }
        }
    }
}

/// Keys and changes of the terminal's size. The thread that waits for them ends with the program.
fn events() -> mpsc::Receiver<Event> {
    let (sender, receiver) = mpsc::channel(16);
    std::thread::spawn(move || {
        while let Ok(event) = event::read() {
            if sender.blocking_send(event).is_err() {
                return;
            }
        }
    });
    receiver
}

fn ends(event: &Event) -> bool {
    let Event::Key(key) = event else { return false };
    let is_interrupt =
        key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    is_interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
}

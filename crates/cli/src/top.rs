//! `polynym top`: a server's metrics as a terminal screen.

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
use polynym_exposition::{Figures, Scrape};
use scraper::Scraper;

pub const EXAMPLES: &str = "\
Examples:
  polynym serve --sample --admin-listen 127.0.0.1:9464
  polynym top
  polynym top --metrics https://users.example.com:9464 --token-file ops.token
  polynym top --once --json

Press q, Esc or Ctrl-C to quit.";

/// The maximum intervals of the sparklines.
const MAX_HISTORY: usize = 120;

/// The state of the screen.
#[derive(Default)]
pub struct State {
    /// The figures of the last interval.
    figures: Figures,
    /// Calls per second, and p99 in microseconds, of the last intervals.
    history: VecDeque<(u64, u64)>,
    /// The last error, and the time of the first one.
    outage: Option<(String, Instant)>,
}

impl State {
    fn add(&mut self, figures: Figures) {
        if self.history.len() == MAX_HISTORY {
            self.history.pop_front();
        }
        let p99 = figures.times.p99.unwrap_or_default() * 1e6;
        self.history.push_back((figures.calls as u64, p99 as u64));
        (self.figures, self.outage) = (figures, None);
    }

    fn note_error(&mut self, error: String) {
        let since = self.outage.take().map_or_else(Instant::now, |(_, since)| since);
        self.outage = Some((error, since));
    }
}

pub async fn run(flags: Flags<Top>) -> Result<(), Failure> {
    let settings = flags.load()?;
    let (interval, json) = (settings.interval, settings.output.json);
    let is_screen = !settings.once && !json && std::io::stdout().is_terminal();
    let url = settings.metrics.to_string();
    let scraper = Scraper::new(settings)?;
    let failure = |error: String| Failure::Other(format!("{url}: {error}"));
    let first = scraper.scrape().await.map_err(failure)?;
    if is_screen {
        return watch(&scraper, first, interval).await;
    }

    let begun = Instant::now();
    tokio::time::sleep(interval).await;
    let second = scraper.scrape().await.map_err(failure)?;
    let figures = Figures::new(&first, &second, begun.elapsed());
    if json { output::print_json(&figures) } else { table::print(&figures) }
}

/// Shows the screen until a key ends it, then restores the terminal.
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
    let scrape_later = async || {
        tokio::time::sleep(interval).await;
        scraper.scrape().await
    };
    let mut next = Box::pin(scrape_later());
    loop {
        terminal.draw(|frame| screen::draw(frame, &state))?;
        tokio::select! {
            key = events.recv() => match key {
                Some(event) if !is_quit(&event) => {}
                _ => return Ok(()),
            },
            scraped = &mut next => {
                match scraped {
                    Ok(after) => {
                        state.add(Figures::new(&before, &after, since.elapsed()));
                        (before, since) = (after, Instant::now());
                    }
                    Err(error) => state.note_error(error),
                }
                next = Box::pin(scrape_later());
            }
        }
    }
}

/// Keys and changes of the terminal's size. The thread that reads them ends with the program.
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

fn is_quit(event: &Event) -> bool {
    let Event::Key(key) = event else { return false };
    let is_interrupt =
        key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    is_interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
}

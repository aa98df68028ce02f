//! The screen: sparklines of calls and latencies, methods, and resources in use.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Paragraph, Row, Sparkline, Table};

use super::State;
use super::table::facts;
use polynym_presentation::count::seconds;

/// Draws the state. A small terminal shows the first parts.
pub fn draw(frame: &mut Frame<'_>, state: &State) {
    let facts = facts(&state.figures);
    let parts = [
        Constraint::Length(1),
        Constraint::Length(4),
        Constraint::Min(3),
        Constraint::Length(facts.len() as u16 + 1),
    ];
    let [head, charts, methods, foot] = Layout::vertical(parts).areas(frame.area());
    frame.render_widget(title(state), head);
    sparklines(frame, state, charts);
    frame.render_widget(table(state), methods);
    let lines = facts.into_iter().map(|(name, text)| Line::from(format!("{name}: {text}")));
    frame.render_widget(Paragraph::new(lines.collect::<Vec<_>>()), foot);
}

fn title(state: &State) -> Line<'static> {
    if let Some((error, since)) = &state.outage {
        return Line::from(format!("no answer for {} s: {error}", since.elapsed().as_secs())).red();
    }
    let figures = &state.figures;
    let (p50, p99) = (seconds(figures.times.p50), seconds(figures.times.p99));
    Line::from(format!(
        "polynym {}   {:.0} calls/s   p50 {p50}   p99 {p99}   q quits",
        figures.version, figures.calls
    ))
    .bold()
}

/// The last intervals that fit, the latest on the right.
fn sparklines(frame: &mut Frame<'_>, state: &State, area: Rect) {
    let halves = Layout::horizontal([Constraint::Ratio(1, 2); 2]).spacing(1).areas::<2>(area);
    let series = |pick: fn(&(u64, u64)) -> u64| -> Vec<u64> {
        let shown = usize::from(halves[0].width).min(state.history.len());
        state.history.iter().skip(state.history.len() - shown).map(pick).collect()
    };
    let (calls, times) = (series(|(calls, _)| *calls), series(|(_, p99)| *p99));
    let line = |title: &'static str, color| {
        Sparkline::default().block(Block::new().title(title)).style(color)
    };
    frame.render_widget(line("calls/s", Color::Green).data(calls), halves[0]);
    frame.render_widget(line("p99", Color::Yellow).data(times), halves[1]);
}

fn table(state: &State) -> Table<'static> {
    let row = |method: &polynym_exposition::Method| {
        Row::new([
            method.name.clone(),
            format!("{:.0}", method.calls),
            seconds(method.times.p50),
            seconds(method.times.p99),
        ])
    };
    let widths =
        [Constraint::Fill(1), Constraint::Length(8), Constraint::Length(9), Constraint::Length(9)];
    Table::new(state.figures.methods.iter().map(row), widths)
        .header(Row::new(["method", "calls/s", "p50", "p99"]).bold())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use polynym_exposition::{Figures, Method, Times};

    fn rendered(state: &State, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn the_screen_shows_calls_times_and_errors() {
        let times = Times { p50: Some(120e-6), p99: Some(0.0042) };
        let method = Method { name: "ResolveIdentity".to_owned(), calls: 59_000.0, times };
        let figures = Figures {
            calls: 59_000.0,
            times,
            methods: vec![method],
            errors: [("NOT_FOUND".to_owned(), 12.0)].into(),
            under_way: [("look-up".to_owned(), (3.0, 1024.0))].into(),
            shared: Some(7.25),
            ..Default::default()
        };
        let mut state = State::default();
        for _ in 0..200 {
            state.add(figures.clone());
        }
        let text = rendered(&state, 80, 24);
        for part in
            ["59000", "120 µs", "4.2 ms", "NOT_FOUND 12.0/s", "look-up 3/1024", "7.2", "█", "–"]
        {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(rendered(&state, 40, 12).contains("ResolveIden"));
        rendered(&state, 3, 1);

        state.outage = Some(("connection refused".to_owned(), Instant::now()));
        assert!(rendered(&state, 80, 24).contains("no answer for 0 s: connection refused"));
    }
}

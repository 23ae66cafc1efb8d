//! The table at the end, for people.

use std::fmt::Write;
use std::time::Duration;

use crate::report::stream::Totals;
use crate::session::Outcome;

/// More players than this get one line together.
const MOST_LINES: usize = 20;

pub fn table(outcomes: &[Outcome], totals: Option<Totals>) -> String {
    let mut text = String::new();
    if outcomes.len() > MOST_LINES {
        together(&mut text, outcomes);
    } else if !outcomes.is_empty() {
        one_by_one(&mut text, outcomes);
    }
    if let Some(totals) = totals {
        let _ = writeln!(
            text,
            "reports: {} acknowledged, {} rejected, {} lost, {} connection(s) to the station",
            totals.acknowledged, totals.rejected, totals.lost, totals.connections
        );
    }
    text
}

fn one_by_one(text: &mut String, outcomes: &[Outcome]) {
    let _ =
        writeln!(text, "{:<24} {:>8} {:>8} {:>6} {:>9}  shown", "session", "played", "start-up", "stalls", "stalled");
    for outcome in outcomes {
        let last = &outcome.last;
        let startup = last.startup.map_or("-".into(), |time| format!("{:.2} s", time.as_secs_f64()));
        let _ = writeln!(
            text,
            "{:<24} {:>6.1} s {:>8} {:>6} {:>7.1} s  {}",
            outcome.session_id,
            last.position.as_secs_f64(),
            startup,
            last.stall_count,
            last.stalled.as_secs_f64(),
            shares(&outcome.shown)
        );
        if let Some(error) = &outcome.error {
            let _ = writeln!(text, "{:<24} failed: {error}", "");
        }
    }
}

fn together(text: &mut String, outcomes: &[Outcome]) {
    let count = outcomes.len();
    let stalls: u32 = outcomes.iter().map(|outcome| outcome.last.stall_count).sum();
    let stalled = outcomes.iter().filter(|outcome| outcome.last.stall_count > 0).count();
    let failed = outcomes.iter().filter(|outcome| outcome.error.is_some()).count();
    let played: f64 = outcomes.iter().map(|outcome| outcome.last.position.as_secs_f64()).sum();
    let worst = outcomes.iter().filter_map(|outcome| outcome.last.startup).max().unwrap_or_default();
    let _ = writeln!(
        text,
        "{count} players: {:.1} s played on average, slowest start-up {:.2} s, {stalled} stalled ({stalls} stalls), \
         {failed} failed",
        played / count as f64,
        worst.as_secs_f64()
    );
}

fn shares(shown: &[(String, Duration)]) -> String {
    let all: f64 = shown.iter().map(|(_, time)| time.as_secs_f64()).sum();
    let share = |time: &Duration| 100.0 * time.as_secs_f64() / all.max(f64::MIN_POSITIVE);
    let parts = shown.iter().rev().map(|(label, time)| format!("{label} {:.1} %", share(time)));
    parts.collect::<Vec<_>>().join(", ")
}

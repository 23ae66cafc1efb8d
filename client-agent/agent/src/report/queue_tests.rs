use super::*;
use proptest::prelude::*;

fn report(session: &str, number: u64) -> PlaybackReport {
    PlaybackReport {
        session_id: session.into(),
        sequence_number: number,
        cause: ReportCause::Periodic.into(),
        ..Default::default()
    }
}

fn drain(queue: &mut Queue, now: Duration) -> Vec<(String, u64, ReportCause)> {
    std::iter::from_fn(|| queue.take(now))
        .map(|report| (report.session_id.clone(), report.sequence_number, report.cause()))
        .collect()
}

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn what_was_made_while_away_comes_first_as_history_and_the_newest_as_state() {
    let mut queue = Queue::default();
    for number in 1..=3 {
        queue.push(report("a", number), s(number));
    }
    queue.restart();
    let sent = drain(&mut queue, s(3));
    let causes = [ReportCause::Replayed, ReportCause::Periodic, ReportCause::Periodic];
    assert_eq!(sent.iter().map(|(_, _, cause)| *cause).collect::<Vec<_>>(), causes);
}

#[test]
fn what_is_not_acknowledged_is_sent_again_after_a_new_connection() {
    let mut queue = Queue::default();
    for number in 1..=4 {
        queue.push(report("a", number), s(0));
    }
    drain(&mut queue, s(0));
    queue.acknowledge("a", 2);
    queue.restart();
    let again: Vec<u64> = drain(&mut queue, s(9)).into_iter().map(|(_, number, _)| number).collect();
    assert_eq!(again, [3, 4]);
}

#[test]
fn a_session_keeps_its_last_sixty_and_leaves_the_others_alone() {
    let mut queue = Queue::default();
    queue.push(report("b", 1), s(0));
    for number in 1..=100 {
        queue.push(report("a", number), s(0));
    }
    assert_eq!(queue.len(), 61);
    assert_eq!(queue.dropped(), 40);
    let kept = drain(&mut queue, s(0));
    assert_eq!(kept[0].0, "b");
    assert_eq!(kept[1].1, 41);
}

#[test]
fn a_report_the_station_had_already_is_no_refusal() {
    let mut queue = Queue::default();
    queue.push(report("a", 1), s(0));
    drain(&mut queue, s(0));
    queue.restart();
    drain(&mut queue, s(0));
    assert_eq!(queue.reject("a", 1, true), Rejected::KnownAlready);
    assert!(queue.is_empty());
    queue.push(report("a", 2), s(0));
    drain(&mut queue, s(0));
    assert_eq!(queue.reject("a", 2, true), Rejected::Refused);
}

#[derive(Debug, Clone)]
enum Step {
    Push(u8),
    Take,
    Acknowledge(u8, u64),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u8..3).prop_map(Step::Push),
        4 => Just(Step::Take),
        2 => (0u8..3, 0u64..300).prop_map(|(session, number)| Step::Acknowledge(session, number)),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    /// On one connection a session's reports go out in order and once; memory is bounded; nothing that was
    /// acknowledged is sent again.
    #[test]
    fn order_and_bounds_hold_whatever_happens(steps in proptest::collection::vec(step(), 0..400)) {
        let mut queue = Queue::default();
        let mut made = [0u64; 3];
        let mut sent = [0u64; 3];
        let mut acknowledged = [0u64; 3];
        for step in steps {
            match step {
                Step::Push(session) => {
                    made[session as usize] += 1;
                    queue.push(report(&session.to_string(), made[session as usize]), s(0));
                }
                Step::Take => {
                    if let Some(report) = queue.take(s(0)) {
                        let session: usize = report.session_id.parse().unwrap();
                        prop_assert!(report.sequence_number > sent[session]);
                        prop_assert!(report.sequence_number > acknowledged[session]);
                        sent[session] = report.sequence_number;
                    }
                }
                Step::Acknowledge(session, number) => {
                    let number = number.min(sent[session as usize]);
                    queue.acknowledge(&session.to_string(), number);
                    acknowledged[session as usize] = acknowledged[session as usize].max(number);
                }
                Step::Restart => {
                    queue.restart();
                    sent = [0; 3];
                }
            }
            prop_assert!(queue.len() <= 3 * MOST_PER_SESSION);
            prop_assert_eq!(queue.has_unsent(), queue.sent < queue.len());
        }
    }
}

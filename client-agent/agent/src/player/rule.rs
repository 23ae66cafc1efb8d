//! The rate rule: which rendition the next video segment is asked in. Buffer-based, with hysteresis.
//!
//! * It starts at the top rate.
//! * It steps down to the next lower rate when less than `down_below` (8 s) is buffered, once playback has
//!   begun. Not in the initial fill, where little is buffered because little time has passed: that lasts until
//!   `down_below` is first reached, or the buffer is seen to shrink, or playback stalls.
//! * It steps up to the next higher rate when at least `up_at` (25 s) is buffered.
//! * One step per segment; a segment under way is never given up.
//!
//! Where the player's goal is small, the thresholds are no more than a quarter and 0.6 of it.

use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    Buffer {
        down_below: Duration,
        up_at: Duration,
    },
    /// Always the top rate.
    Off,
}

impl Rule {
    /// The rule with its stated thresholds, for a player that fills to `goal`. A goal too small for them gets
    /// proportionate ones: else it would step down at once and never up.
    pub fn buffer(goal: Duration) -> Rule {
        Rule::Buffer {
            down_below: Duration::from_secs(8).min(goal.mul_f64(0.25)),
            up_at: Duration::from_secs(25).min(goal.mul_f64(0.6)),
        }
    }
}

/// What the rule looks at.
#[derive(Debug, Clone, Copy)]
pub struct Sight {
    pub buffered: Duration,
    pub playing: bool,
    pub stalled: bool,
}

/// What was chosen, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    pub rendition: usize,
    pub reason: &'static str,
}

/// The rule and what it remembers.
#[derive(Debug, Clone)]
pub struct Chooser {
    rule: Rule,
    top: usize,
    current: usize,
    /// While the initial fill lasts: what was buffered when it chose last.
    filling: Option<Duration>,
}

impl Chooser {
    pub fn new(rule: Rule, top: usize) -> Chooser {
        Chooser { rule, top, current: top, filling: Some(Duration::ZERO) }
    }

    /// The rendition chosen last.
    pub fn current(&self) -> usize {
        self.current
    }

    /// Chooses for the next segment. `highest` is the best rendition that advice allows.
    pub fn choose(&mut self, sight: Sight, highest: usize) -> Choice {
        let (wanted, mut reason) = self.by_rule(sight);
        let rendition = wanted.min(highest);
        if rendition < wanted {
            reason = "the network advised a lower rate";
        }
        self.current = rendition;
        Choice { rendition, reason }
    }

    fn by_rule(&mut self, sight: Sight) -> (usize, &'static str) {
        let Rule::Buffer { down_below, up_at } = self.rule else {
            return (self.top, "the rule is off: top rate");
        };
        if let Some(last) = self.filling {
            let shrinks = sight.playing && sight.buffered < last;
            let over = sight.buffered >= down_below || shrinks || sight.stalled;
            self.filling = (!over).then_some(sight.buffered);
        }
        if sight.buffered >= up_at && self.current < self.top {
            (self.current + 1, "buffered playtime is at or above the upper threshold")
        } else if sight.buffered < down_below && self.filling.is_none() && self.current > 0 {
            (self.current - 1, "buffered playtime is below the lower threshold")
        } else {
            (self.current, "buffered playtime gives no reason to change")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOAL: Duration = Duration::from_secs(55);

    fn at(seconds: u64) -> Sight {
        Sight { buffered: Duration::from_secs(seconds), playing: true, stalled: false }
    }

    #[test]
    fn the_initial_fill_stays_at_the_top() {
        let mut chooser = Chooser::new(Rule::buffer(GOAL), 2);
        for seconds in [0, 2, 4, 6, 7] {
            assert_eq!(chooser.choose(at(seconds), 2).rendition, 2);
        }
    }

    #[test]
    fn it_steps_down_one_by_one_below_the_lower_threshold_and_up_at_the_upper() {
        let mut chooser = Chooser::new(Rule::buffer(GOAL), 2);
        let chosen: Vec<usize> = [0, 8, 7, 7, 7, 8, 24, 25, 26, 8]
            .into_iter()
            .map(|seconds| chooser.choose(at(seconds), 2).rendition)
            .collect();
        assert_eq!(chosen, [2, 2, 1, 0, 0, 0, 0, 1, 2, 2]);
    }

    #[test]
    fn a_fill_that_shrinks_or_stalls_steps_down() {
        let mut shrinking = Chooser::new(Rule::buffer(GOAL), 1);
        shrinking.choose(at(4), 1);
        assert_eq!(shrinking.choose(at(3), 1).rendition, 0);
        let mut stalled = Chooser::new(Rule::buffer(GOAL), 1);
        let sight = Sight { buffered: Duration::ZERO, playing: false, stalled: true };
        assert_eq!(stalled.choose(sight, 1).rendition, 0);
    }

    #[test]
    fn a_small_goal_gets_proportionate_thresholds() {
        let Rule::Buffer { down_below, up_at } = Rule::buffer(Duration::from_secs(10)) else { unreachable!() };
        assert_eq!((down_below.as_millis(), up_at.as_millis()), (2500, 6000));
        let stated = Rule::Buffer { down_below: Duration::from_secs(8), up_at: Duration::from_secs(25) };
        assert_eq!(Rule::buffer(GOAL), stated);
    }

    #[test]
    fn switched_off_it_stays_at_the_top_unless_advised() {
        let mut chooser = Chooser::new(Rule::Off, 2);
        assert_eq!(chooser.choose(at(0), 2).rendition, 2);
        assert_eq!(chooser.choose(at(50), 0).rendition, 0);
        assert_eq!(chooser.choose(at(50), 2).rendition, 2);
    }
}

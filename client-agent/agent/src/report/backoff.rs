//! How long to wait before the next attempt: exponential, with jitter, so that a thousand agents that lost their
//! station at once do not come back at once. Pure: chance goes in.

use std::time::Duration;

pub const FIRST: Duration = Duration::from_millis(200);
pub const LAST: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// The wait after one more failure, from half of the nominal time to all of it. `chance` is from 0 to 1.
    pub fn next(&mut self, chance: f64) -> Duration {
        let nominal = FIRST.saturating_mul(1 << self.failures.min(16)).min(LAST);
        self.failures = self.failures.saturating_add(1);
        nominal.mul_f64(0.5 + 0.5 * chance.clamp(0.0, 1.0)).max(FIRST)
    }

    /// An attempt has worked.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_nominal_wait_doubles_up_to_the_last() {
        let mut backoff = Backoff::default();
        let waits: Vec<u128> = (0..9).map(|_| backoff.next(1.0).as_millis()).collect();
        assert_eq!(waits, [200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000]);
        backoff.reset();
        assert_eq!(backoff.next(1.0), FIRST);
    }

    proptest! {
        #[test]
        fn every_wait_lies_within_the_bounds(chances in proptest::collection::vec(any::<f64>(), 1..200)) {
            let mut backoff = Backoff::default();
            for chance in chances {
                let chance = if chance.is_nan() { 0.0 } else { chance };
                let wait = backoff.next(chance);
                prop_assert!((FIRST..=LAST).contains(&wait));
            }
        }
    }
}

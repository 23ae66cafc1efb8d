/**
 * Learns the buffer that a player aims at: the most it ever had, once it has held on to it while there was more
 * to fetch. A buffer that a scarce network keeps small does not count: that one fell from its peak.
 */

/** Held: for so long in play ... */
const HELD_MS = 15_000;
/** A player that is seen to rest is believed so much sooner. */
const RESTING_FACTOR = 5;
/** ... no new peak by more than this ... */
const RISE_S = 1;
/** ... and never below this share of the peak: players fetch in pieces of up to 10 s. */
const HELD_SHARE = 0.6;
/** With less media left than this beyond the buffer there was nothing more to fetch. */
const MORE_S = 5;
/** A smaller buffer is no aim, only the start. */
const LEAST_S = 2;

export class GoalWatch {
  #peakS = 0;
  #heldMs = 0;
  #goalS = 0;
  #lastMs: number | undefined;

  /** Seconds; 0 while not known. */
  get goalS(): number {
    return this.#goalS;
  }

  /**
   * `playing`: state PLAYING. `resting`: the player asks for nothing although it could. A seek or a new source starts
   * the search again; what was learnt stays.
   */
  observe(bufferS: number, remainingS: number | undefined, playing: boolean, resting: boolean, nowMs: number): void {
    const stepMs = this.#lastMs === undefined ? 0 : Math.min(2000, Math.max(0, nowMs - this.#lastMs));
    this.#lastMs = nowMs;
    if (!playing) return;
    if (bufferS > this.#peakS + RISE_S) {
      this.#peakS = bufferS;
      this.#heldMs = 0;
      return;
    }
    const more = remainingS === undefined || remainingS > bufferS + MORE_S;
    if (bufferS < this.#peakS * HELD_SHARE || !more) {
      this.#heldMs = 0;
      return;
    }
    this.#heldMs += resting ? stepMs * RESTING_FACTOR : stepMs;
    if (this.#heldMs >= HELD_MS && this.#peakS >= LEAST_S) this.#goalS = Math.max(this.#goalS, this.#peakS);
  }

  /** A seek drops the buffer: the next peak counts from there. */
  restart(): void {
    this.#peakS = 0;
    this.#heldMs = 0;
  }
}

/**
 * Does a player rest? One that has what it aims at asks for the next piece only when it has played one; on a scarce
 * network it asks again at once. Told from when the requests of a page for media began and ended.
 */

interface Span {
  readonly startMs: number;
  readonly endMs: number;
}

const MOST_SPANS = 64;
/** So much is looked at, and at least so much is needed. */
const WINDOW_MS = 10_000;
const LEAST_MS = 3000;
/** A player that asks for less than this share of the time rests. */
const BUSY_SHARE = 0.7;
/** What ended longer ago tells nothing of now: a request may be under way that is not told of yet. */
const STALE_MS = 8000;

export class RestWatch {
  #spans: Span[] = [];

  /** A request that is complete. Times are those of one clock, in any order. */
  took(startMs: number, endMs: number): void {
    if (!(endMs >= startMs)) return;
    this.#spans.push({ startMs, endMs });
    if (this.#spans.length > MOST_SPANS) this.#spans.shift();
  }

  rests(nowMs: number): boolean {
    const fresh = this.#spans.filter(({ endMs }) => endMs > nowMs - WINDOW_MS).sort((a, b) => a.startMs - b.startMs);
    const first = fresh[0];
    if (first === undefined) return false;
    let busyMs = 0;
    let untilMs = first.startMs;
    for (const { startMs, endMs } of fresh) {
      busyMs += Math.max(0, endMs - Math.max(startMs, untilMs));
      untilMs = Math.max(untilMs, endMs);
    }
    const wholeMs = untilMs - first.startMs;
    return nowMs - untilMs < STALE_MS && wholeMs >= LEAST_MS && busyMs <= BUSY_SHARE * wholeMs;
  }
}

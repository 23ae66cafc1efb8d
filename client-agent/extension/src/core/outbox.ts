/** What waits for the host: bounded, and never more under way than the host keeps up with. */

/** Reports that wait while the host is away; older ones have successors. */
export const MOST_WAITING = 60;
/** Reports that the host has not taken off the pipe yet: the browser would keep any number in memory. */
export const MOST_UNDER_WAY = 64;

export class Outbox<T> {
  #waiting: T[] = [];
  #underWay = 0;
  #dropped = 0;

  get dropped(): number {
    return this.#dropped;
  }
  get underWay(): number {
    return this.#underWay;
  }

  push(message: T): void {
    this.#waiting.push(message);
    if (this.#waiting.length > MOST_WAITING) {
      this.#waiting.shift();
      this.#dropped += 1;
    }
  }

  /** All that may be sent now, marked as under way. */
  take(): T[] {
    const taken = this.#waiting.splice(0, Math.max(0, MOST_UNDER_WAY - this.#underWay));
    this.#underWay += taken.length;
    return taken;
  }

  /** The host has taken one. */
  acknowledged(): void {
    this.#underWay = Math.max(0, this.#underWay - 1);
  }

  /** A new pipe: what was under way is with the old host, or lost. */
  restart(): void {
    this.#underWay = 0;
  }
}

const FIRST_WAIT_MS = 500;
const LAST_WAIT_MS = 60_000;

/** How long to wait after so many failures in a row; `chance` from 0 to 1. */
export function waitMs(failures: number, chance: number): number {
  const nominal = Math.min(LAST_WAIT_MS, FIRST_WAIT_MS * 2 ** Math.min(failures, 16));
  return nominal * (0.5 + 0.5 * chance);
}

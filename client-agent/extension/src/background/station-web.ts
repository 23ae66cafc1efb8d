/**
 * Without the host: reports go to the station's web interface, with the servers' addresses only. The station
 * takes POST {address}/reports with {"reports": [ServedReport, ...]} (1 to 64 of them) and answers
 * {"messages": [...]}: those that the host would have sent.
 */

import { type FromHost, fromHost, type ServedReport } from "../core/messages";

const TIMEOUT_MS = 4000;
const MOST_REPORTS = 64;
const MOST_ANSWERS = 256;
/** After a failure, so long nothing is tried. */
const PAUSE_MS = 5000;

export class StationWeb {
  readonly #hear: (message: FromHost) => void;
  /** The latest report of each session, until the next batch. */
  #waiting = new Map<string, ServedReport>();
  #busy = false;
  #notBeforeMs = 0;
  #answered = false;

  constructor(hear: (message: FromHost) => void) {
    this.#hear = hear;
  }

  /** It took the last batch. */
  get answers(): boolean {
    return this.#answered;
  }

  push(report: ServedReport): void {
    if (this.#waiting.size < MOST_REPORTS || this.#waiting.has(report.session_id)) {
      // What helps to tell sockets apart is of no use to a station.
      const servers = report.servers.map(({ address, port }) => ({ address, port }));
      this.#waiting.set(report.session_id, { ...report, servers });
    }
  }

  /** Sends what waits, one batch at a time. `address`: without a slash at its end. */
  async flush(address: string, nowMs: number): Promise<void> {
    if (this.#busy || this.#waiting.size === 0 || nowMs < this.#notBeforeMs) return;
    const reports = [...this.#waiting.values()];
    this.#waiting = new Map();
    this.#busy = true;
    try {
      const response = await fetch(`${address}/reports`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ reports }),
        credentials: "omit",
        cache: "no-store",
        referrerPolicy: "no-referrer",
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      if (!response.ok) throw new Error(`the station answered ${response.status}`);
      const { messages } = (await response.json()) as { messages?: unknown };
      for (const value of Array.isArray(messages) ? messages.slice(0, MOST_ANSWERS) : []) {
        const message = fromHost(value);
        if (message !== undefined) this.#hear(message);
      }
      this.#answered = true;
    } catch {
      this.#answered = false;
      this.#notBeforeMs = nowMs + PAUSE_MS;
    } finally {
      this.#busy = false;
    }
  }
}

/** All sessions of the browser: where each plays, what it said last, what the network said of it. Pure. */

import type { DecisionWord, FiveTuple, News, ServedReport, Server } from "./messages";
import type { Picture, Report } from "./words";

/** A station refuses more of one customer; a browser that plays more has other troubles. */
export const MOST_SESSIONS = 64;

/** What the popup shows of one session. */
export interface View {
  readonly sessionId: string;
  readonly tab: number;
  readonly report: Report;
  readonly picture: Picture;
  readonly servers: readonly Server[];
  critical: boolean | undefined;
  sustainableKbps: number | undefined;
  decision: { kind: DecisionWord; reason: string; atMs: number } | undefined;
  rejection: string | undefined;
  flows: readonly FiveTuple[] | undefined;
}

interface Entry {
  readonly frame: number;
  /** When it last reported. */
  readonly toldMs: number;
  view: View;
}

export class Hub {
  readonly #sessions = new Map<string, Entry>();

  get size(): number {
    return this.#sessions.size;
  }

  /** A frame reports. Returns what goes on to the network; undefined where there are too many sessions. */
  report(frame: number, tab: number, report: Report, picture: Picture, servers: readonly Server[], nowMs: number) {
    const known = this.#sessions.get(report.session_id);
    // A session is of the frame that began it: no other may speak for it.
    if (known !== undefined && known.frame !== frame) return undefined;
    if (report.player_state === "QUIT") {
      this.#sessions.delete(report.session_id);
      return known === undefined ? undefined : { ...report, servers };
    }
    if (known === undefined && this.#sessions.size >= MOST_SESSIONS) return undefined;
    const view: View = {
      critical: undefined,
      sustainableKbps: undefined,
      decision: undefined,
      rejection: undefined,
      flows: undefined,
      ...known?.view,
      sessionId: report.session_id,
      tab,
      report,
      picture,
      servers,
    };
    this.#sessions.set(report.session_id, { frame, toldMs: nowMs, view });
    return { ...report, servers };
  }

  /** The frame is gone without a farewell. Returns its sessions' last reports. */
  frameGone(frame: number, wallMs: number): ServedReport[] {
    const gone: ServedReport[] = [];
    for (const [id, { frame: of, view }] of this.#sessions) {
      if (of !== frame) continue;
      this.#sessions.delete(id);
      gone.push({
        ...view.report,
        sequence_number: view.report.sequence_number + 1,
        timestamp_ms: Math.max(view.report.timestamp_ms, Math.round(wallMs)),
        cause: "STATE_CHANGE",
        player_state: "QUIT",
        playback_rate: 0,
        servers: view.servers,
      });
    }
    return gone;
  }

  /** What the network says of a session; of one that is over it is forgotten. */
  heard(news: News, nowMs: number): void {
    const view = this.#sessions.get(news.session_id)?.view;
    if (view === undefined) return;
    switch (news.type) {
      case "assessment":
        view.critical = news.critical;
        view.rejection = undefined;
        break;
      case "advice":
        view.sustainableKbps = news.sustainable_kbps;
        break;
      case "decision":
        view.decision = { kind: news.kind, reason: news.reason, atMs: nowMs };
        break;
      case "rejection":
        view.rejection = news.message;
        break;
      case "flows":
        view.flows = news.flows;
        break;
    }
  }

  /** When this session last reported; long ago for a new one. */
  toldMs(sessionId: string): number {
    return this.#sessions.get(sessionId)?.toldMs ?? Number.NEGATIVE_INFINITY;
  }

  frameOf(sessionId: string): number | undefined {
    return this.#sessions.get(sessionId)?.frame;
  }

  viewsOf(tab: number): View[] {
    return [...this.#sessions.values()].map(({ view }) => view).filter((view) => view.tab === tab);
  }

  get frames(): Set<number> {
    return new Set([...this.#sessions.values()].map(({ frame }) => frame));
  }
}

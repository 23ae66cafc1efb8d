/** Watches a frame's players: gives them sessions, reads them, and ends the sessions of those that are gone. */

import type { FromFrame } from "../core/messages";
import { makeRoom, worthASession } from "../core/roster";
import { Session, type Spoken } from "../core/session";
import { Finder } from "./finder";
import { isPaused, isVideo, read, signOf, sourceOf } from "./reader";

/** Events after which a player may be in another state. They only say that it is time to read. */
const EVENTS = [
  "loadstart",
  "emptied",
  "loadeddata",
  "canplay",
  "play",
  "playing",
  "pause",
  "waiting",
  "stalled",
  "seeking",
  "seeked",
  "ended",
  "error",
  "ratechange",
  "resize",
  "abort",
] as const;
/** Events read between two ticks; a page can make any number. */
const MOST_EVENTS = 200;
/** Walking the tree for new shadow roots takes at most this share of the time: half a percent of a core. */
const WALK_SHARE = 0.005;

interface Seat {
  readonly session: Session;
  readonly source: string;
}

export class Watch {
  readonly #say: (message: FromFrame) => void;
  readonly #onSource: (source: string) => void;
  readonly #rests: (nowMs: number) => boolean;
  readonly #finder = new Finder((root) => this.#listen(root));
  readonly #seats = new Map<HTMLMediaElement, Seat>();
  #events = 0;
  #nextWalkMs = Number.NEGATIVE_INFINITY;
  #lastTickMs = Number.NEGATIVE_INFINITY;

  /** `onSource` hears what a new session plays from; `rests` tells whether the page's scripts fetch media with pauses. */
  constructor(
    say: (message: FromFrame) => void,
    onSource: (source: string) => void,
    rests: (nowMs: number) => boolean,
  ) {
    this.#say = say;
    this.#onSource = onSource;
    this.#rests = rests;
  }

  get busy(): boolean {
    return this.#seats.size > 0;
  }

  /** Once a second, by this frame's timer or, where that is throttled, by the background's. */
  tick(): void {
    const nowMs = performance.now();
    if (nowMs - this.#lastTickMs < 500) return;
    this.#lastTickMs = nowMs;
    this.#events = 0;
    if (nowMs >= this.#nextWalkMs) {
      this.#finder.walk();
      this.#nextWalkMs = nowMs + (performance.now() - nowMs) / WALK_SHARE;
    }
    for (const [element, { session }] of this.#seats) {
      // A page that only moves an element puts it back at once; one that plays on unseen is still a session.
      if (!element.isConnected && isPaused(element)) this.#leave(element, session);
      else this.#look(element);
    }
    for (const element of this.#finder.elements()) if (!this.#seats.has(element)) this.#look(element);
  }

  /** Somebody wants to hear of this session now. */
  again(sessionId: string): void {
    for (const [element, { session }] of this.#seats) if (session.id === sessionId) this.#look(element, true);
  }

  /** The page goes, or the viewer has paused the extension. */
  leaveAll(): void {
    for (const [element, { session }] of this.#seats) this.#leave(element, session);
  }

  #listen(root: Document | ShadowRoot): void {
    for (const name of EVENTS) root.addEventListener(name, this.#onEvent, { capture: true, passive: true });
  }

  readonly #onEvent = (event: Event): void => {
    const element = event.target;
    if (!event.isTrusted || !(element instanceof HTMLMediaElement)) return;
    this.#events += 1;
    if (this.#events > MOST_EVENTS) return;
    const seat = this.#seats.get(element);
    if (event.type === "emptied" && seat !== undefined) this.#leave(element, seat.session);
    this.#look(element);
  };

  #look(element: HTMLMediaElement, asked = false): void {
    let seat = this.#seats.get(element);
    const source = sourceOf(element);
    if (seat !== undefined && seat.source !== source) {
      this.#leave(element, seat.session);
      seat = undefined;
    }
    seat ??= this.#seat(element, source);
    if (seat === undefined) return;
    const nowMs = performance.now();
    const reading = read(element);
    const resting = reading.resting || (source.startsWith("blob:") && this.#rests(nowMs));
    this.#pass(seat.session.observe({ ...reading, resting }, nowMs, Date.now(), asked));
  }

  #seat(element: HTMLMediaElement, source: string): Seat | undefined {
    if (!worthASession(signOf(element))) return undefined;
    const seated = [...this.#seats];
    const room = makeRoom(seated.map(([, { session }]) => session));
    if (room === undefined) return undefined;
    const evicted = seated[room];
    if (evicted !== undefined) this.#leave(evicted[0], evicted[1].session);
    const seat = { session: new Session(randomId(), isVideo(element) ? "video" : "audio"), source };
    this.#seats.set(element, seat);
    this.#onSource(source);
    return seat;
  }

  #leave(element: HTMLMediaElement, session: Session): void {
    this.#seats.delete(element);
    this.#pass(session.quit(performance.now(), Date.now()));
  }

  #pass(spoken: Spoken | undefined): void {
    if (spoken !== undefined) this.#say({ type: "report", ...spoken });
  }
}

/** Says nothing of page, viewer or time. (crypto.randomUUID is missing on pages without TLS.) */
function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

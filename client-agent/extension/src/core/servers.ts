/** Which servers carry a tab's media: from what the browser says of its requests, never keeping a URL. */

import type { Server } from "./messages";

/** A server that has sent nothing for so long no longer carries the film. */
const KEPT_MS = 60_000;
const MOST_SERVERS = 8;
const MOST_PLACES = 200;
const MOST_FRAMES = 50;
/** Smaller answers are not media segments, unless they say that they are. */
const LARGE_BYTES = 200_000;
const MEDIA_PATH = /\.(m4s|mp4|m4v|m4a|cmfv|cmfa|webm|ts|aac|mkv|ogg|ogv|opus|mp3)$/i;
const MEDIA_TYPE = /^(video|audio)\/|^application\/(mp4|vnd\.yt-ump|vnd\.apple\.mpegurl$)/i;
const OPAQUE_TYPE = /^(application\/(octet-stream|x-)|binary\/|$)/i;
/** Kinds of requests that can carry media. */
const KINDS: ReadonlySet<string> = new Set(["media", "xmlhttprequest", "other", "object"]);

export interface Answer {
  /** webRequest's resource type. */
  readonly kind: string;
  readonly path: string;
  readonly contentType: string;
  /** NaN where it is not told. */
  readonly contentBytes: number;
}

/** Does this answer carry media, by what can be seen without reading it? */
export function mediaLike(answer: Answer): boolean {
  if (answer.kind === "media") return true;
  if (!KINDS.has(answer.kind)) return false;
  if (MEDIA_TYPE.test(answer.contentType) || MEDIA_PATH.test(answer.path)) return true;
  return OPAQUE_TYPE.test(answer.contentType) && answer.contentBytes >= LARGE_BYTES;
}

/** The UDP port of HTTP/3 on the same host, as an Alt-Svc header announces it; undefined where it does not. */
export function http3Port(altSvc: string): number | undefined {
  const port = Number(/(?:^|[,\s])h3=":(\d{1,5})"/.exec(altSvc)?.[1] ?? Number.NaN);
  return port >= 1 && port <= 65_535 ? port : undefined;
}

/** Who asks: a tab by its number; a worker that serves many tabs (a service worker) by its origin. */
export type Place = number | string;

/** A server as it answered once. */
export interface Answerer {
  readonly address: string;
  readonly port: number;
  /** Its name, for what the page knows of it; kept in memory, never sent. */
  readonly host: string;
  readonly http3Port: number | undefined;
}

interface Entry {
  readonly key: string;
  who: Answerer;
  /** Frames of the tab that have asked it for media. */
  readonly frames: Set<number>;
  /** Requests under way: a whole film may be one. */
  open: number;
  lastMs: number;
}

/** Whose servers are asked for. */
export interface Asker {
  readonly tab: number;
  readonly frame: number;
  /** Of the frame's document; "" where it has none. */
  readonly origin: string;
  /** When this session was last told of: what was under way since then makes a server busy. */
  readonly sinceMs: number;
  /** What the page knows of a host: its last answer came by HTTP/3, or by something else. */
  readonly http3: (host: string) => boolean | undefined;
}

export class ServerBook {
  readonly #places = new Map<Place, Map<string, Entry>>();
  readonly #requests = new Map<string, Entry>();

  /** A media answer has begun. True: this server is new here. */
  began(place: Place, frame: number, request: string, who: Answerer, nowMs: number): boolean {
    let entries = this.#places.get(place);
    if (entries === undefined) {
      const oldest = this.#places.keys().next();
      if (this.#places.size >= MOST_PLACES && !oldest.done) this.forget(oldest.value);
      entries = new Map();
      this.#places.set(place, entries);
    }
    const key = `${who.address} ${who.port}`;
    const known = entries.get(key);
    const entry = known ?? { key, who, frames: new Set(), open: 0, lastMs: nowMs };
    // The latest stands last.
    entries.delete(key);
    entries.set(key, entry);
    const least = entries.keys().next();
    if (entries.size > MOST_SERVERS && !least.done) entries.delete(least.value);
    entry.who = { ...who, http3Port: who.http3Port ?? entry.who.http3Port };
    entry.lastMs = nowMs;
    if (entry.frames.size < MOST_FRAMES) entry.frames.add(frame);
    if (!this.#requests.has(request) && this.#requests.size < MOST_PLACES * MOST_SERVERS) {
      entry.open += 1;
      this.#requests.set(request, entry);
    }
    return known === undefined;
  }

  /** The answer is complete, or has failed. */
  ended(request: string, nowMs: number): void {
    const entry = this.#requests.get(request);
    if (entry === undefined) return;
    this.#requests.delete(request);
    entry.open -= 1;
    entry.lastMs = nowMs;
  }

  /**
   * The servers of this frame's media, the latest first: those that it has asked itself, and that its origin's
   * service worker has asked. Where there are none (another frame fetches for it) those of its tab.
   */
  serversOf(asker: Asker, nowMs: number): Server[] {
    const ofTab = this.#entriesOf(asker.tab, nowMs);
    const own = ofTab.filter(({ frames }) => frames.has(asker.frame));
    const known = new Set(own.map(({ key }) => key));
    const workers = asker.origin === "" ? [] : this.#entriesOf(asker.origin, nowMs);
    const mine = [...own, ...workers.filter(({ key }) => !known.has(key))];
    const found = (mine.length > 0 ? mine : ofTab).slice(0, MOST_SERVERS);
    return found.sort((a, b) => b.lastMs - a.lastMs).map((entry) => server(entry, asker));
  }

  /** The tab is closed, or shows another page. */
  forget(place: Place): void {
    const entries = new Set(this.#places.get(place)?.values());
    this.#places.delete(place);
    for (const [request, entry] of this.#requests) if (entries.has(entry)) this.#requests.delete(request);
  }

  /** The latest first; what has aged is dropped. */
  #entriesOf(place: Place, nowMs: number): Entry[] {
    const entries = this.#places.get(place);
    if (entries === undefined) return [];
    for (const [key, entry] of entries) {
      if (entry.open === 0 && nowMs - entry.lastMs > KEPT_MS) entries.delete(key);
    }
    return [...entries.values()].reverse();
  }
}

function server({ who, open, lastMs }: Entry, { sinceMs, http3 }: Asker): Server {
  const told = http3(who.host);
  return {
    address: who.address,
    port: who.port,
    busy: open > 0 || lastMs >= sinceMs,
    ...(told === undefined ? {} : { http3: told }),
    ...(who.http3Port === undefined ? {} : { http3_port: who.http3Port }),
  };
}

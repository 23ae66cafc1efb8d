/** Which servers carry a tab's media: from what the browser says of its requests, never keeping a URL. */

import type { Server } from "./messages";

/** A server that has sent nothing for so long no longer carries the film. */
const KEPT_MS = 60_000;
const MOST_SERVERS = 8;
const MOST_TABS = 200;
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

interface Entry {
  readonly server: Server;
  /** Frames of the tab that have asked it for media. */
  readonly frames: Set<number>;
  /** Requests under way: a whole film may be one. */
  open: number;
  lastMs: number;
}

export class ServerBook {
  readonly #tabs = new Map<number, Map<string, Entry>>();
  readonly #requests = new Map<string, Entry>();

  /** A media answer has begun. */
  began(tab: number, frame: number, request: string, server: Server, nowMs: number): void {
    let entries = this.#tabs.get(tab);
    if (entries === undefined) {
      const oldest = this.#tabs.keys().next();
      if (this.#tabs.size >= MOST_TABS && !oldest.done) this.forget(oldest.value);
      entries = new Map();
      this.#tabs.set(tab, entries);
    }
    const key = `${server.address} ${server.port}`;
    const entry = entries.get(key) ?? { server, frames: new Set(), open: 0, lastMs: nowMs };
    // The latest stands last.
    entries.delete(key);
    entries.set(key, entry);
    const least = entries.keys().next();
    if (entries.size > MOST_SERVERS && !least.done) entries.delete(least.value);
    entry.lastMs = nowMs;
    if (entry.frames.size < MOST_FRAMES) entry.frames.add(frame);
    if (!this.#requests.has(request) && this.#requests.size < MOST_TABS * MOST_SERVERS) {
      entry.open += 1;
      this.#requests.set(request, entry);
    }
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
   * The servers of this frame's media, the latest first. Where the frame itself has asked for none (another frame
   * or a worker fetches for it) those of its tab.
   */
  serversOf(tab: number, frame: number, nowMs: number): Server[] {
    const entries = this.#tabs.get(tab);
    if (entries === undefined) return [];
    for (const [key, entry] of entries) {
      if (entry.open === 0 && nowMs - entry.lastMs > KEPT_MS) entries.delete(key);
    }
    const all = [...entries.values()].reverse();
    const own = all.filter(({ frames }) => frames.has(frame));
    return (own.length > 0 ? own : all).map(({ server }) => server);
  }

  /** The tab is closed, or shows another page. */
  forget(tab: number): void {
    const entries = new Set(this.#tabs.get(tab)?.values());
    this.#tabs.delete(tab);
    for (const [request, entry] of this.#requests) if (entries.has(entry)) this.#requests.delete(request);
  }
}

/**
 * What the page's timeline tells of its media requests: from which hosts, so that the popup can ask the viewer for
 * them; by which protocol; and whether the player rests. Host names go to the background and never further.
 */

import type { MediaHost } from "../core/messages";
import { RestWatch } from "../core/rest";

const KINDS: ReadonlySet<string> = new Set(["video", "audio", "xmlhttprequest", "fetch"]);
const MEDIA_PATH = /\.(m4s|mp4|m4v|m4a|cmfv|cmfa|webm|ts|aac|mkv|ogg|opus|mp3|mpd|m3u8)$/i;
/** So large an answer to a script carries media most likely. Other hosts tell no sizes, unless they choose to. */
const LARGE_BYTES = 200_000;
const MOST_HOSTS = 16;

export class Hosts {
  readonly rest = new RestWatch();
  readonly #hosts = new Map<string, boolean | undefined>();
  readonly #onNew: (hosts: MediaHost[]) => void;

  /** `onNew` hears all of them, each time there is one more, or one has changed its protocol. */
  constructor(onNew: (hosts: MediaHost[]) => void) {
    this.#onNew = onNew;
    const observer = new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) this.#take(entry as PerformanceResourceTiming);
    });
    observer.observe({ type: "resource", buffered: true });
  }

  get all(): MediaHost[] {
    return [...this.#hosts].map(([name, http3]) => (http3 === undefined ? { name } : { name, http3 }));
  }

  /** A player plays from here, directly or through a script (blob:). */
  add(source: string): void {
    const url = parse(source);
    if (url !== undefined) this.#add(url.hostname, undefined);
  }

  #take(entry: PerformanceResourceTiming): void {
    if (!KINDS.has(entry.initiatorType)) return;
    const url = parse(entry.name);
    if (url === undefined) return;
    const direct = entry.initiatorType === "video" || entry.initiatorType === "audio";
    if (!direct && !MEDIA_PATH.test(url.pathname) && entry.transferSize < LARGE_BYTES) return;
    this.rest.took(entry.startTime, entry.responseEnd);
    // From the browser's own store nothing came over any protocol; other hosts tell it only if they choose to.
    const told = entry.transferSize > 0 ? entry.nextHopProtocol : "";
    this.#add(url.hostname, told === "" ? undefined : told.startsWith("h3"));
  }

  #add(host: string, http3: boolean | undefined): void {
    if (host === "" || (!this.#hosts.has(host) && this.#hosts.size >= MOST_HOSTS)) return;
    const known = this.#hosts.get(host);
    if (this.#hosts.has(host) && (http3 === undefined || http3 === known)) return;
    this.#hosts.set(host, http3 ?? known);
    this.#onNew(this.all);
  }
}

function parse(text: string): URL | undefined {
  try {
    const url = new URL(text);
    return /^https?:$/.test(url.protocol) ? url : undefined;
  } catch {
    return undefined;
  }
}

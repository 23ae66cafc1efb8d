/** Which hosts a film seems to come from, so that the popup can ask the viewer for them. Names stay in the browser. */

const KINDS: ReadonlySet<string> = new Set(["video", "audio", "xmlhttprequest", "fetch"]);
const MEDIA_PATH = /\.(m4s|mp4|m4v|m4a|cmfv|cmfa|webm|ts|aac|mkv|ogg|opus|mp3|mpd|m3u8)$/i;
const MOST_HOSTS = 16;

export class Hosts {
  readonly #hosts = new Set<string>();
  readonly #onNew: (hosts: string[]) => void;

  /** `onNew` hears all of them, each time there is one more. */
  constructor(onNew: (hosts: string[]) => void) {
    this.#onNew = onNew;
    const observer = new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) this.#take(entry as PerformanceResourceTiming);
      if (this.#hosts.size >= MOST_HOSTS) observer.disconnect();
    });
    observer.observe({ type: "resource", buffered: true });
  }

  get all(): string[] {
    return [...this.#hosts];
  }

  /** A player plays from here, directly or through a script (blob:). */
  add(source: string): void {
    const url = parse(source);
    if (url !== undefined) this.#add(url.hostname);
  }

  #take(entry: PerformanceResourceTiming): void {
    if (!KINDS.has(entry.initiatorType)) return;
    const url = parse(entry.name);
    const direct = entry.initiatorType === "video" || entry.initiatorType === "audio";
    if (url !== undefined && (direct || MEDIA_PATH.test(url.pathname))) this.#add(url.hostname);
  }

  #add(host: string): void {
    if (host === "" || this.#hosts.has(host) || this.#hosts.size >= MOST_HOSTS) return;
    this.#hosts.add(host);
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

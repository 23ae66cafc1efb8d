/** Which hosts a film seems to come from, so that the popup can ask the viewer for them. Names stay in the browser. */

const KINDS: ReadonlySet<string> = new Set(["video", "audio", "xmlhttprequest", "fetch"]);
const MEDIA_PATH = /\.(m4s|mp4|m4v|m4a|cmfv|cmfa|webm|ts|aac|mkv|ogg|opus|mp3|mpd|m3u8)$/i;
const MOST_HOSTS = 16;

export class Hosts {
  readonly #hosts = new Set<string>();

  /** `onNew` hears all of them, each time there is one more. */
  constructor(onNew: (hosts: string[]) => void) {
    const observer = new PerformanceObserver((list) => {
      const before = this.#hosts.size;
      for (const entry of list.getEntries()) this.#take(entry as PerformanceResourceTiming);
      if (this.#hosts.size > before) onNew([...this.#hosts]);
      if (this.#hosts.size >= MOST_HOSTS) observer.disconnect();
    });
    observer.observe({ type: "resource", buffered: true });
  }

  get all(): string[] {
    return [...this.#hosts];
  }

  #take(entry: PerformanceResourceTiming): void {
    if (!KINDS.has(entry.initiatorType) || this.#hosts.size >= MOST_HOSTS) return;
    let url: URL;
    try {
      url = new URL(entry.name);
    } catch {
      return;
    }
    const direct = entry.initiatorType === "video" || entry.initiatorType === "audio";
    if (url.hostname !== "" && (direct || MEDIA_PATH.test(url.pathname))) this.#hosts.add(url.hostname);
  }
}

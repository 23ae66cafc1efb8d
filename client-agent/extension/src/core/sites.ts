/** Match patterns of sites, and addresses that reports may go to. */

/** The pattern that asks for one host, all ports; undefined for pages that are no web pages. */
export function patternOf(url: string): string | undefined {
  const parsed = parse(url);
  if (parsed === null || !/^https?:$/.test(parsed.protocol) || parsed.hostname === "") return undefined;
  return `*://${parsed.hostname}/*`;
}

/** The host of a pattern, for people. */
export function hostOf(pattern: string): string {
  return pattern === "<all_urls>" || pattern === "*://*/*"
    ? "all sites"
    : pattern.replace(/^[^:]*:\/\//, "").replace(/\/.*$/, "");
}

const LEAST_WIDTH = 200;
const LEAST_HEIGHT = 100;
const MOST_FRAMES = 8;

export interface Frame {
  readonly src: string;
  /** The frame's permissions policy; "fullscreen" also where it says so the old way. */
  readonly allow: string;
  readonly width: number;
  readonly height: number;
}

/** Hosts of frames that look like players: large, and allowed what players want. */
export function framesOf(frames: readonly Frame[]): string[] {
  const players = frames.filter(
    ({ allow, width, height }) =>
      /\b(fullscreen|autoplay|encrypted-media|picture-in-picture)\b/.test(allow) &&
      width >= LEAST_WIDTH &&
      height >= LEAST_HEIGHT,
  );
  const hosts = players.flatMap(({ src }) => (patternOf(src) === undefined ? [] : [new URL(src).hostname]));
  return [...new Set(hosts)].slice(0, MOST_FRAMES);
}

/** The station's web interface: https, or http on this machine. Throws with what is allowed. */
export function stationAddress(text: string): string {
  const url = parse(text.trim());
  const local = url !== null && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname);
  const good = url !== null && (url.protocol === "https:" || (url.protocol === "http:" && local));
  if (!good || url.username !== "" || url.search !== "" || url.hash !== "") {
    throw new RangeError("expected is https://HOST or https://HOST:PORT (http only for this computer)");
  }
  return url.href.replace(/\/+$/, "");
}

function parse(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

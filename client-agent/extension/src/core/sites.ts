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

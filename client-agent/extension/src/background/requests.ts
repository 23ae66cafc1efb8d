/** Hears which servers answer a tab's media requests. Neither URL nor content is kept. */

import { http3Port, mediaLike, type Place, type ServerBook } from "../core/servers";

const DEFAULT_PORTS: Readonly<Record<string, number>> = { "http:": 80, "https:": 443 };

function header(headers: readonly chrome.webRequest.HttpHeader[] | undefined, name: string): string {
  return headers?.find((one) => one.name.toLowerCase() === name)?.value ?? "";
}

/** A tab's request, or one of a service worker, which fetches for all tabs of its origin. */
function placeOf(details: { tabId: number; initiator?: string; originUrl?: string }): Place | undefined {
  if (details.tabId >= 0) return details.tabId;
  const from = details.initiator ?? details.originUrl;
  return from === undefined ? undefined : originOf(from);
}

export function originOf(url: string): string | undefined {
  try {
    const { origin } = new URL(url);
    return origin === "null" ? undefined : origin;
  } catch {
    return undefined;
  }
}

/** `onNew` hears where a server was new. Listeners are set at once, at top level: a worker that was asleep is woken by them. */
export function listen(book: ServerBook, onNew: (place: Place) => void): void {
  const all = { urls: ["http://*/*", "https://*/*"] };
  chrome.webRequest.onResponseStarted.addListener(
    (details) => {
      const place = placeOf(details);
      if (place === undefined || details.fromCache || details.ip === undefined) return;
      // Another page: what it plays comes from elsewhere.
      if (details.type === "main_frame") book.forget(details.tabId);
      const url = new URL(details.url);
      const length = header(details.responseHeaders, "content-length");
      const answer = {
        kind: details.type,
        path: url.pathname,
        contentType: header(details.responseHeaders, "content-type"),
        contentBytes: length === "" ? Number.NaN : Number(length),
      };
      if (!mediaLike(answer)) return;
      const port = url.port === "" ? (DEFAULT_PORTS[url.protocol] ?? 443) : Number(url.port);
      const isNew = book.began(
        place,
        details.frameId,
        details.requestId,
        {
          address: details.ip.replace(/^\[|\]$/g, ""),
          port,
          host: url.hostname,
          http3Port: http3Port(header(details.responseHeaders, "alt-svc")),
        },
        Date.now(),
      );
      if (isNew) onNew(place);
    },
    all,
    ["responseHeaders"],
  );
  const ended = (details: { requestId: string }) => book.ended(details.requestId, Date.now());
  chrome.webRequest.onCompleted.addListener(ended, all);
  chrome.webRequest.onErrorOccurred.addListener(ended, all);
}

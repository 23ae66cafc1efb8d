/** The extension's middle: hears the frames, tells the network, and answers the pages. It wires; others decide. */

import { Hub } from "../core/hub";
import { type FromFrame, type FromHost, MEDIA_PORT, type ServedReport, type ToFrame } from "../core/messages";
import type { Way } from "../core/people";
import { ServerBook } from "../core/servers";
import { NativeLink } from "./native";
import type { AskState, State } from "./pages";
import { listen, originOf } from "./requests";
import { type Settings, settings } from "./settings";
import { inject, register } from "./sites";
import { StationWeb } from "./station-web";

/** After the last session, the program on this computer gets so long for the last words. */
const FAREWELL_MS = 10_000;
const MOST_FRAMES = 1000;
const MOST_HOSTS = 16;

const hub = new Hub();
const book = new ServerBook();
const host = new NativeLink((message) => hear(message));
const web = new StationWeb((message) => hear(message));
const frames = new Map<number, chrome.runtime.Port>();
/** Hosts that a tab's media seems to come from; whether by HTTP/3. */
const hosts = new Map<number, Map<string, boolean | undefined>>();
let chosen: Settings = { paused: false, stationWeb: "" };
let station: "connected" | "away" | "none" | undefined;
let stationMessage = "";
let nextFrame = 1;
let timer: ReturnType<typeof setInterval> | undefined;
let quietSinceMs = 0;

// A film that comes from another server now is told of at once, not only with the next second.
listen(book, (place) => {
  if (typeof place !== "number") return;
  for (const { sessionId } of hub.viewsOf(place)) again(sessionId);
});

function again(sessionId: string): void {
  frames.get(hub.frameOf(sessionId) ?? -1)?.postMessage({ type: "again", session_id: sessionId } satisfies ToFrame);
}

function hear(message: FromHost): void {
  if (message.type === "station") {
    station = message.state;
    stationMessage = message.message;
  } else if (message.type === "hello") {
    station = message.station === "" ? "none" : station;
  } else if (message.type === "again") {
    again(message.session_id);
  } else if (message.type !== "ack" && message.type !== "error") {
    hub.heard(message, Date.now());
  }
}

function send(report: ServedReport): void {
  const nowMs = Date.now();
  host.send({ type: "report", report }, nowMs);
  if (host.state !== "open" && chosen.stationWeb !== "") web.push(report);
  timer ??= setInterval(tick, 1000);
}

/** Once a second while something plays: frames whose timers the browser slows down are told, too. */
function tick(): void {
  const nowMs = Date.now();
  for (const frame of hub.frames) frames.get(frame)?.postMessage({ type: "tick" } satisfies ToFrame);
  if (chosen.stationWeb !== "" && host.state !== "open") void web.flush(chosen.stationWeb, nowMs);
  if (hub.size > 0) {
    quietSinceMs = 0;
    host.tick(nowMs);
    return;
  }
  quietSinceMs ||= nowMs;
  if (nowMs - quietSinceMs < FAREWELL_MS) return;
  host.close();
  clearInterval(timer);
  timer = undefined;
  quietSinceMs = 0;
}

chrome.runtime.onConnect.addListener((port) => {
  const tab = port.sender?.tab?.id;
  if (port.name !== MEDIA_PORT || tab === undefined || frames.size >= MOST_FRAMES) {
    port.disconnect();
    return;
  }
  const frame = nextFrame;
  nextFrame += 1;
  frames.set(frame, port);
  port.onMessage.addListener((message: FromFrame) => {
    if (chosen.paused) return;
    if (message.type === "hosts") {
      const told = message.hosts.map(({ name, http3 }) => [name, http3] as const);
      hosts.set(tab, new Map([...(hosts.get(tab) ?? []), ...told].slice(-MOST_HOSTS)));
      return;
    }
    const nowMs = Date.now();
    const asker = {
      tab,
      frame: port.sender?.frameId ?? 0,
      origin: originOf(port.sender?.origin ?? port.sender?.url ?? "") ?? "",
      sinceMs: hub.toldMs(message.report.session_id),
      http3: (host: string) => hosts.get(tab)?.get(host),
    };
    const servers = book.serversOf(asker, nowMs);
    const report = hub.report(frame, tab, message.report, message.picture, servers, nowMs);
    if (report !== undefined) send(report);
  });
  port.onDisconnect.addListener(() => {
    void chrome.runtime.lastError;
    frames.delete(frame);
    for (const report of hub.frameGone(frame, Date.now())) send(report);
  });
});

chrome.tabs.onRemoved.addListener((tab) => {
  book.forget(tab);
  hosts.delete(tab);
});
chrome.tabs.onUpdated.addListener((tab, change) => {
  // Another page: its hosts are others. Its servers may have begun to answer already; they age by themselves.
  if (change.status === "loading" && change.url !== undefined) hosts.delete(tab);
});

function way(): Way {
  if (chosen.paused) return "paused";
  if (host.state === "open") {
    if (station === "away") return "host-station-away";
    if (station === "none") return "host-without-station";
    return hub.size === 0 ? "idle" : "host";
  }
  if (chosen.stationWeb !== "" && (web.answers || hub.size === 0)) return "web";
  return host.state === "absent" ? "none" : "idle";
}

chrome.runtime.onMessage.addListener((message: AskState, sender, answer) => {
  // Only our own pages ask, never a content script.
  if (message?.type !== "state" || !sender.url?.startsWith(chrome.runtime.getURL(""))) return false;
  if (!chosen.paused) host.probe(Date.now());
  timer ??= setInterval(tick, 1000);
  answer({
    way: way(),
    hostError: host.state === "absent" ? host.error : "",
    stationMessage: station === "away" ? stationMessage : "",
    views: message.tab === undefined ? [] : hub.viewsOf(message.tab),
    hosts: message.tab === undefined ? [] : [...(hosts.get(message.tab)?.keys() ?? [])],
    nowMs: Date.now(),
  } satisfies State);
  return false;
});

async function obey(): Promise<void> {
  chosen = await settings();
  // Frames end their sessions themselves; what they say last is still told before the pipe closes.
  if (chosen.paused) setTimeout(() => chosen.paused && host.close(), 1000);
}
chrome.storage.onChanged.addListener((_, area) => {
  if (area === "local") void obey();
});
void obey();

chrome.permissions.onAdded.addListener(({ origins }) => {
  void register().then(() => inject(origins ?? []));
});
chrome.permissions.onRemoved.addListener(() => {
  void register();
  // Frames of a site that is no longer allowed stop; those of others come again with their next word.
  for (const port of frames.values()) port.postMessage({ type: "stop" } satisfies ToFrame);
  void chrome.permissions.getAll().then(({ origins }) => inject(origins ?? []));
});
chrome.runtime.onStartup.addListener(() => void register());
chrome.runtime.onInstalled.addListener(({ reason }) => {
  // Pages that are open have no script yet, or that of the version before.
  void register().then(async () => inject((await chrome.permissions.getAll()).origins ?? []));
  if (reason === "install") void chrome.tabs.create({ url: chrome.runtime.getURL("options.html?welcome") });
});

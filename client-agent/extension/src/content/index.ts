/** Runs in each frame of the sites that the viewer has allowed. */

import { type FromFrame, MEDIA_PORT, type ToFrame } from "../core/messages";
import { waitMs } from "../core/outbox";
import { Hosts } from "./hosts";
import { Watch } from "./watch";

const PERIOD_MS = 1000;

/** Begins to watch this frame. Returns what starts it again after a stop. */
function begin(): () => void {
  let port: chrome.runtime.Port | undefined;
  let failures = 0;
  let stopped = false;
  /** By the viewer; nothing is read before we know. */
  let paused = true;
  let timer: ReturnType<typeof setInterval> | undefined;

  const say = (message: FromFrame): void => {
    try {
      connect()?.postMessage(message);
    } catch {
      // The background has just gone; the next report tells it all again.
      port = undefined;
    }
  };
  const watch = new Watch(
    say,
    (source) => hosts.add(source),
    (nowMs) => hosts.rest.rests(nowMs),
  );
  const hosts = new Hosts((all) => {
    if (watch.busy) say({ type: "hosts", hosts: all });
  });

  /** A frame without players keeps no port: it costs the background nothing. */
  function connect(): chrome.runtime.Port | undefined {
    if (port !== undefined || stopped) return port;
    if (chrome.runtime?.id === undefined) {
      // The extension was removed or replaced: this script is an orphan.
      stopped = true;
      clearInterval(timer);
      return undefined;
    }
    port = chrome.runtime.connect({ name: MEDIA_PORT });
    port.onMessage.addListener((message: ToFrame) => {
      failures = 0;
      if (message.type === "tick") watch.tick();
      else if (message.type === "again") watch.again(message.session_id);
      else if (message.type === "stop") stop();
    });
    port.onDisconnect.addListener(() => {
      void chrome.runtime.lastError;
      port = undefined;
      failures += 1;
    });
    if (hosts.all.length > 0) port.postMessage({ type: "hosts", hosts: hosts.all } satisfies FromFrame);
    return port;
  }

  let heldUntilMs = 0;
  function tick(): void {
    const nowMs = performance.now();
    if (port === undefined && failures > 3) {
      // The background comes and goes: not a connection a second.
      if (heldUntilMs === 0) heldUntilMs = nowMs + waitMs(failures, 0.5);
      if (nowMs < heldUntilMs) return;
      heldUntilMs = 0;
    }
    watch.tick();
  }

  function start(): void {
    stopped = false;
    if (timer !== undefined || paused) return;
    watch.tick();
    timer = setInterval(tick, PERIOD_MS);
  }

  function stop(): void {
    watch.leaveAll();
    stopped = true;
    clearInterval(timer);
    timer = undefined;
    port?.disconnect();
    port = undefined;
  }

  addEventListener("pagehide", (event) => {
    if (!event.isTrusted) return;
    watch.leaveAll();
    clearInterval(timer);
    timer = undefined;
    port?.disconnect();
    port = undefined;
  });
  addEventListener("pageshow", (event) => {
    if (event.isTrusted) start();
  });
  const obey = (value: unknown): void => {
    paused = value === true;
    if (paused) stop();
    else start();
  };
  chrome.storage.onChanged.addListener((changes, area) => {
    if (area === "local" && changes.paused !== undefined) obey(changes.paused.newValue);
  });
  void chrome.storage.local.get("paused").then(({ paused }) => obey(paused));
  return start;
}

// Registered and injected, or injected once more after the site was taken away and allowed again: one is enough.
const world = globalThis as typeof globalThis & { steerline?: { readonly id: string; readonly start: () => void } };
if (world.steerline?.id === chrome.runtime.id) world.steerline.start();
else world.steerline = { id: chrome.runtime.id, start: begin() };

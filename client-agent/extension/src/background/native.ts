/** The pipe to the program on this computer: opened while there is something to tell, and opened again when it breaks. */

import { type FromHost, fromHost, HOST_NAME, PROTOCOL, type ToHost } from "../core/messages";
import { Outbox, waitMs } from "../core/outbox";

/** A host that takes nothing off the pipe for so long hangs. */
const HANGS_MS = 30_000;

export type HostState = "unknown" | "open" | "absent";

export class NativeLink {
  readonly #hear: (message: FromHost) => void;
  readonly #outbox = new Outbox<ToHost>();
  #port: chrome.runtime.Port | undefined;
  #state: HostState = "unknown";
  #failures = 0;
  #retryAtMs = 0;
  #heardMs = 0;
  #error = "";

  constructor(hear: (message: FromHost) => void) {
    this.#hear = hear;
  }

  /** "open" only once the host has spoken. */
  get state(): HostState {
    return this.#state;
  }
  /** Why it is absent, in the browser's or the host's words. */
  get error(): string {
    return this.#error;
  }

  send(message: ToHost, nowMs: number): void {
    this.#outbox.push(message);
    this.#open(nowMs);
    this.#flush();
  }

  /** Once a second while there are sessions. */
  tick(nowMs: number): void {
    if (this.#port !== undefined && this.#outbox.underWay > 0 && nowMs - this.#heardMs > HANGS_MS) {
      this.#port.disconnect();
      this.#closed("The Steerline program hangs.", nowMs);
    }
    this.#open(nowMs);
  }

  /** Asks whether the host is there, for the pages. */
  probe(nowMs: number): void {
    this.#open(nowMs);
  }

  /** Nothing plays any more: the program may end. */
  close(): void {
    this.#port?.disconnect();
    this.#port = undefined;
    this.#outbox.restart();
    if (this.#state === "open") this.#state = "unknown";
  }

  #open(nowMs: number): void {
    if (this.#port !== undefined || nowMs < this.#retryAtMs) return;
    let port: chrome.runtime.Port;
    try {
      port = chrome.runtime.connectNative(HOST_NAME);
    } catch (error) {
      this.#closed(String(error), nowMs);
      return;
    }
    this.#port = port;
    this.#heardMs = nowMs;
    this.#outbox.restart();
    port.onMessage.addListener((value: unknown) => {
      if (port !== this.#port) return;
      const message = fromHost(value);
      if (message === undefined) return;
      this.#heardMs = Date.now();
      this.#state = "open";
      this.#error = "";
      this.#failures = 0;
      if (message.type === "ack") this.#outbox.acknowledged();
      else if (message.type === "error") this.#error = message.message;
      this.#hear(message);
      this.#flush();
    });
    port.onDisconnect.addListener((closed) => {
      if (port !== this.#port) return;
      const error = chrome.runtime.lastError ?? (closed as { error?: { message?: string } }).error;
      this.#closed(error?.message ?? "The Steerline program has ended.", Date.now());
    });
    const version = chrome.runtime.getManifest().version;
    const browser = BROWSER;
    port.postMessage({ type: "hello", protocol: PROTOCOL, version, browser } satisfies ToHost);
  }

  #flush(): void {
    // Before the host's first word nothing is on its way: it may not exist.
    if (this.#port === undefined || this.#state !== "open") return;
    for (const message of this.#outbox.take()) this.#port.postMessage(message);
  }

  #closed(error: string, nowMs: number): void {
    this.#port = undefined;
    this.#state = "absent";
    this.#error ||= error;
    this.#outbox.restart();
    this.#retryAtMs = nowMs + waitMs(this.#failures, Math.random());
    this.#failures += 1;
  }
}

/** The little that the pages need of the document. */

import type { AskState, State } from "../background/pages";
import { WAYS } from "../core/people";

export function byId<T extends HTMLElement>(id: string): T {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page lacks #${id}`);
  return found as T;
}

/** Sets a text, only where it has changed: screen readers say it again otherwise. */
export function say(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
  element.hidden = text === "";
}

export async function ask(tab?: number): Promise<State | undefined> {
  const message: AskState = tab === undefined ? { type: "state" } : { type: "state", tab };
  try {
    return await chrome.runtime.sendMessage(message);
  } catch {
    // The background is just starting; the next second asks again.
    return undefined;
  }
}

/** How reports reach the network, and what is wrong with that. */
export function showWay(state: State): void {
  const { tone, text } = WAYS[state.way];
  byId("way").dataset.tone = tone;
  say(byId("way"), text);
  say(byId("why"), state.hostError !== "" ? `The browser says: ${state.hostError}` : state.stationMessage);
}

export async function bindPause(): Promise<void> {
  const box = byId<HTMLInputElement>("paused");
  const { paused } = await chrome.storage.local.get("paused");
  box.checked = paused === true;
  box.addEventListener("change", () => void chrome.storage.local.set({ paused: box.checked }));
}

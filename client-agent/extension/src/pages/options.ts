/** Onboarding, what is sent, and settings. */

import { hostOf, stationAddress } from "../core/sites";
import { ask, bindPause, byId, say, showWay } from "./dom";

async function showSites(): Promise<void> {
  const { origins = [] } = await chrome.permissions.getAll();
  const list = byId("sites");
  list.replaceChildren();
  byId("no-sites").hidden = origins.length > 0;
  for (const origin of origins.sort()) {
    const item = document.createElement("li");
    item.className = "row";
    const name = document.createElement("span");
    name.textContent = hostOf(origin);
    const button = document.createElement("button");
    button.type = "button";
    button.className = "second";
    button.textContent = "Take away";
    button.setAttribute("aria-label", `Take away ${hostOf(origin)}`);
    button.addEventListener("click", () => void chrome.permissions.remove({ origins: [origin] }));
    item.append(name, button);
    list.append(item);
  }
}

async function bindWeb(): Promise<void> {
  const field = byId<HTMLInputElement>("station-web");
  const note = byId("web-note");
  const { stationWeb } = await chrome.storage.local.get("stationWeb");
  field.value = typeof stationWeb === "string" ? stationWeb : "";
  byId("web").addEventListener("submit", (event) => {
    event.preventDefault();
    if (field.value.trim() === "") {
      void chrome.storage.local.set({ stationWeb: "" });
      say(note, "Saved: nothing is sent without the program.");
      return;
    }
    let address: string;
    try {
      address = stationAddress(field.value);
    } catch (error) {
      say(note, `Not saved: ${(error as Error).message}`);
      return;
    }
    // Asked within the submit: browsers refuse later.
    void chrome.permissions.request({ origins: [`*://${new URL(address).hostname}/*`] }).then(async (granted) => {
      if (granted) await chrome.storage.local.set({ stationWeb: address });
      say(note, granted ? "Saved." : "Not saved: without your permission the browser does not let us send there.");
    });
  });
}

async function main(): Promise<void> {
  byId("welcome").hidden = !new URLSearchParams(location.search).has("welcome");
  byId("allow-all").addEventListener("click", () => void chrome.permissions.request({ origins: ["*://*/*"] }));
  chrome.permissions.onAdded.addListener(() => void showSites());
  chrome.permissions.onRemoved.addListener(() => void showSites());
  await Promise.all([bindPause(), bindWeb(), showSites()]);
  const refresh = async () => {
    const state = await ask();
    if (state !== undefined) showWay(state);
  };
  await refresh();
  setInterval(() => void refresh(), 1000);
}

void main();

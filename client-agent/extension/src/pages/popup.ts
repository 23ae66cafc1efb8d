/** The popup: what the network knows of this tab's players, and last decided. */

import type { State } from "../background/pages";
import type { View } from "../core/hub";
import { decided, known } from "../core/people";
import { hostOf, patternOf } from "../core/sites";
import { ask, bindPause, byId, say, showWay } from "./dom";
import { embedded } from "./frames";

const PERIOD_MS = 1000;
/** Where a bar ends while the player's own aim is not known. */
const FULL_S = 60;
/** The network acts below this, and below this share of what the player aims at. */
const LOW_S = 20;
const LOW_SHARE = 0.4;

async function missing(patterns: readonly string[]): Promise<string[]> {
  const has = await Promise.all(patterns.map((pattern) => chrome.permissions.contains({ origins: [pattern] })));
  return patterns.filter((_, index) => !has[index]);
}

let wanted: string[] = [];

async function showSite(pattern: string | undefined, hosts: readonly string[]): Promise<void> {
  const site = byId("site");
  const media = byId("media");
  if (pattern === undefined) {
    site.hidden = false;
    byId("allow").hidden = true;
    say(byId("site-text"), "This is no web page: there is nothing to watch here.");
    return;
  }
  const lacks = (await missing([pattern])).length > 0;
  site.hidden = !lacks;
  if (lacks) {
    say(
      byId("site-text"),
      `Steerline does not watch ${hostOf(pattern)}. Allow it, and it tells the network how much your videos there have in store.`,
    );
    say(byId("allow"), `Allow ${hostOf(pattern)}`);
  }
  wanted = (await missing(hosts.map((host) => `*://${host}/*`))).filter((other) => other !== pattern);
  // One question at a time; the first grants these as well.
  media.hidden = lacks || wanted.length === 0;
  if (wanted.length > 0) {
    say(
      byId("media-text"),
      `Video here comes from ${wanted.map(hostOf).join(", ")}. To watch it, and to see which server sends it, Steerline needs your permission for that as well.`,
    );
  }
}

function showSessions(state: State): void {
  const box = byId("sessions");
  const views = state.way === "paused" ? [] : state.views;
  while (box.children.length > views.length) box.lastElementChild?.remove();
  while (box.children.length < views.length) box.append(card());
  views.forEach((view, index) => {
    fill(box.children[index] as HTMLElement, view, state.nowMs, views.length > 1 ? index + 1 : 0);
  });
}

function card(): HTMLElement {
  const section = document.createElement("section");
  section.className = "card";
  section.append(document.createElement("h2"));
  section.append(document.createElement("meter"));
  for (const title of ["What the network knows", "What it does"]) {
    const heading = document.createElement("h3");
    heading.textContent = title;
    section.append(heading, document.createElement("ul"));
  }
  return section;
}

function fill(section: HTMLElement, view: View, nowMs: number, number: number): void {
  const [title, meter, , knows, , does] = section.children as unknown as [
    HTMLElement,
    HTMLMeterElement,
    HTMLElement,
    HTMLElement,
    HTMLElement,
    HTMLElement,
  ];
  const kind = view.picture.kind === "video" ? "Video" : "Sound";
  const size = view.picture.height > 0 ? `, ${view.picture.height}p` : "";
  say(title, `${kind}${number > 0 ? ` ${number}` : ""}${size}`);
  const inStoreS = view.report.buffer_length_ms / 1000;
  const fullS = view.report.target_buffer_ms > 0 ? view.report.target_buffer_ms / 1000 : FULL_S;
  const value = Math.min(fullS, inStoreS);
  Object.assign(meter, { min: 0, max: fullS, low: Math.min(LOW_S, LOW_SHARE * fullS), optimum: fullS, value });
  meter.setAttribute("aria-label", "Seconds in store");
  list(knows, known(view));
  list(does, decided(view, nowMs));
}

function list(box: HTMLElement, sentences: readonly string[]): void {
  while (box.children.length > sentences.length) box.lastElementChild?.remove();
  while (box.children.length < sentences.length) box.append(document.createElement("li"));
  sentences.forEach((sentence, index) => {
    say(box.children[index] as HTMLElement, sentence);
  });
}

async function main(): Promise<void> {
  // A test may show the popup in a tab of its own, and name the tab that it is about.
  const given = Number(new URLSearchParams(location.search).get("tab") ?? Number.NaN);
  const tab = Number.isInteger(given)
    ? await chrome.tabs.get(given)
    : (await chrome.tabs.query({ active: true, currentWindow: true }))[0];
  const pattern = patternOf(tab?.url ?? "");
  byId("allow").addEventListener("click", () => {
    // Asked within the click: browsers refuse later.
    if (pattern !== undefined) void chrome.permissions.request({ origins: [pattern, ...wanted] });
  });
  byId("allow-media").addEventListener("click", () => void chrome.permissions.request({ origins: wanted }));
  byId("options").addEventListener("click", (event) => {
    event.preventDefault();
    void chrome.runtime.openOptionsPage();
  });
  await bindPause();
  const framed = await embedded(tab?.id);
  const refresh = async () => {
    const state = await ask(tab?.id);
    if (state === undefined) return;
    showWay(state);
    showSessions(state);
    await showSite(pattern, [...new Set([...state.hosts, ...framed])]);
  };
  await refresh();
  setInterval(() => void refresh(), PERIOD_MS);
}

void main();

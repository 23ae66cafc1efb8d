/** What the popup says, in words for people who know nothing of networks. */

import type { View } from "./hub";

/** How reports reach the network. */
export type Way = "host" | "host-station-away" | "host-without-station" | "web" | "none" | "paused" | "idle";

export const WAYS: Readonly<Record<Way, { readonly tone: "good" | "fair" | "bad"; readonly text: string }>> = {
  host: { tone: "good", text: "Connected to your provider’s network." },
  "host-station-away": {
    tone: "bad",
    text: "Your provider’s network does not answer at the moment. Your videos play as they would without Steerline. We keep trying.",
  },
  "host-without-station": {
    tone: "bad",
    text: "The Steerline program on this computer does not know your provider’s address yet. Install it again with the address that your provider gave you.",
  },
  web: {
    tone: "fair",
    text: "Connected, but with less detail: the Steerline program is not on this computer, so the network has to guess which of your connections carries the video.",
  },
  none: {
    tone: "bad",
    text: "The Steerline program is not installed on this computer, so nobody hears about your videos. They play as they would without Steerline.",
  },
  paused: { tone: "fair", text: "Paused by you. Nothing is watched and nothing is sent." },
  idle: { tone: "good", text: "Ready. Nothing is sent while no video plays." },
};

/** Seconds as people say them. */
export function seconds(ms: number): string {
  const s = Math.round(ms / 1000);
  if (s < 120) return s === 1 ? "1 second" : `${s} seconds`;
  return `${Math.round(s / 60)} minutes`;
}

export function rate(kbps: number): string {
  return kbps >= 1000 ? `${(kbps / 1000).toFixed(1)} Mbit/s` : `${Math.round(kbps)} kbit/s`;
}

const STATES: Readonly<Record<string, string>> = {
  STARTING: "is starting",
  PLAYING: "is playing",
  SEEKING: "is looking for the place you chose",
  REBUFFERING: "has frozen, waiting for data",
  PAUSED: "is paused",
  ENDED: "has ended",
  FATAL_ERROR: "has stopped with an error",
};

/** What the network knows of this session: what it was told, sentence by sentence. */
export function known(view: View): string[] {
  const { report, picture } = view;
  const what = picture.kind === "video" ? "video" : "sound";
  const said = [
    `This ${what} ${STATES[report.player_state] ?? "is there"}, with ${seconds(report.buffer_length_ms)} in store.`,
  ];
  if (report.stall_count > 0) {
    const times = report.stall_count === 1 ? "once" : `${report.stall_count} times`;
    said.push(`It froze ${times}, for ${seconds(report.stall_duration_ms)} in all.`);
  }
  if (picture.qualitySwitches > 0) {
    said.push(
      `The picture changed its size ${picture.qualitySwitches === 1 ? "once" : `${picture.qualitySwitches} times`}.`,
    );
  }
  if (picture.droppedFrames > 0) {
    said.push(`This computer left out ${picture.droppedFrames} of ${picture.totalFrames} pictures.`);
  }
  if (view.flows !== undefined && view.flows.length > 0) {
    const n = view.flows.length;
    said.push(`It arrives over ${n === 1 ? "1 connection" : `${n} connections`} that the network was told about.`);
  } else if (view.servers.length > 0) {
    said.push(`It comes from ${view.servers.map(({ address }) => address).join(", ")}.`);
  } else {
    said.push("Which server it comes from is not known yet.");
  }
  return said;
}

const DECISIONS = {
  STEER: "The network moved this video to a line with more room",
  KEEP: "The network looked, and left this video where it is",
  RELEASE: "The network gave the room back that it had kept for this video",
} as const;

/** What the network makes of it, and last decided. */
export function decided(view: View, nowMs: number): string[] {
  const said: string[] = [];
  if (view.rejection !== undefined) said.push(`The network did not accept the last report: ${view.rejection}`);
  else if (view.critical === true) said.push("It is running low. The network knows, and makes room for it.");
  else if (view.critical === false) said.push("It has enough in store. The network need not do anything.");
  if (view.decision !== undefined) {
    const agoMs = nowMs - view.decision.atMs;
    said.push(`${DECISIONS[view.decision.kind]}, ${agoMs < 2000 ? "just now" : `${seconds(agoMs)} ago`}.`);
  }
  if (view.sustainableKbps !== undefined && view.sustainableKbps > 0) {
    said.push(`At the moment it can carry about ${rate(view.sustainableKbps)} for this video.`);
  }
  return said.length > 0 ? said : ["The network has not answered yet."];
}

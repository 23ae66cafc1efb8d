/** What the viewer has chosen, kept in this browser only. */

export interface Settings {
  /** Nothing is watched, nothing is sent. */
  readonly paused: boolean;
  /** The station's web interface, used without the host; empty: not used. */
  readonly stationWeb: string;
}

export async function settings(): Promise<Settings> {
  const { paused, stationWeb } = await chrome.storage.local.get(["paused", "stationWeb"]);
  return { paused: paused === true, stationWeb: typeof stationWeb === "string" ? stationWeb : "" };
}

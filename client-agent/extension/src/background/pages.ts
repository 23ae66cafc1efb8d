/** What the extension's pages ask of the background. */

import type { View } from "../core/hub";
import type { Way } from "../core/people";

export interface AskState {
  readonly type: "state";
  /** The tab whose players are asked for. */
  readonly tab?: number;
}

export interface State {
  readonly way: Way;
  readonly hostError: string;
  readonly stationMessage: string;
  readonly views: View[];
  readonly hosts: string[];
  readonly nowMs: number;
}

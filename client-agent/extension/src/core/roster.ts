/** Which of a frame's media elements are sessions: few, whatever the page does. Pure over any element type. */

/** Sessions of one frame at a time. */
export const MOST_SESSIONS = 16;
/** Elements of one root (the document, a shadow root) that are looked at, so that none hides those of others. */
export const MOST_ELEMENTS = 1000;

/** What decides whether an element becomes a session. */
export interface Sign {
  readonly hasSource: boolean;
  readonly paused: boolean;
  readonly durationS: number;
}

/** An element that plays, or is about to, and is not empty: a video of 0 seconds is no session. */
export function worthASession(sign: Sign): boolean {
  return sign.hasSource && !sign.paused && sign.durationS !== 0;
}

export interface Seat {
  readonly idleSinceMs: number | undefined;
}

/**
 * Makes room for one more: returns which of the seated has to go (index), -1 where there is room already, or
 * undefined where all seats are taken by players in play.
 */
export function makeRoom(seated: readonly Seat[]): number | undefined {
  if (seated.length < MOST_SESSIONS) return -1;
  let longest: number | undefined;
  let sinceMs = Number.POSITIVE_INFINITY;
  seated.forEach((seat, index) => {
    if (seat.idleSinceMs !== undefined && seat.idleSinceMs < sinceMs) {
      sinceMs = seat.idleSinceMs;
      longest = index;
    }
  });
  return longest;
}

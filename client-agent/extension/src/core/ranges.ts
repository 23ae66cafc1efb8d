/** Buffered ranges: made orderly, and asked how much lies ahead of the playhead. */

import type { Range } from "./words";

/** Gaps that browsers play across. */
export const GAP_S = 0.1;
/** A first frame may lie a little after the playhead: composition offsets, edit lists. */
export const AHEAD_S = 0.25;
/** More ranges than any viewer makes by seeking. */
export const MOST_RANGES = 1000;

/** Ordered, without nonsense, with small gaps closed. */
export function orderly(ranges: readonly Range[]): Range[] {
  const good = ranges
    .slice(0, MOST_RANGES)
    .filter(({ startS, endS }) => Number.isFinite(startS) && !Number.isNaN(endS) && startS >= 0 && endS > startS)
    .sort((a, b) => a.startS - b.startS);
  const merged: Range[] = [];
  for (const range of good) {
    const last = merged.at(-1);
    if (last !== undefined && range.startS <= last.endS + GAP_S) {
      merged[merged.length - 1] = { startS: last.startS, endS: Math.max(last.endS, range.endS) };
    } else {
      merged.push(range);
    }
  }
  return merged;
}

/**
 * Seconds of media ahead of the playhead in the range that holds it; 0 where none does. Not the last range:
 * after seeking back, that is media which playback does not reach without a gap.
 */
export function bufferedAheadS(ranges: readonly Range[], positionS: number): number {
  if (!Number.isFinite(positionS)) return 0;
  const holder = orderly(ranges).find(({ startS, endS }) => startS - AHEAD_S <= positionS && positionS < endS);
  if (holder === undefined || !Number.isFinite(holder.endS)) return 0;
  return Math.max(0, holder.endS - Math.max(positionS, holder.startS));
}

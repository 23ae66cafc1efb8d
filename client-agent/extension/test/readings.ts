import type { Reading } from "../src/core/words";

/** A player that plays at `positionS` with `aheadS` buffered from 0 on. */
export function reading(positionS: number, aheadS: number, other: Partial<Reading> = {}): Reading {
  return {
    positionS,
    durationS: 600,
    buffered: [{ startS: 0, endS: positionS + aheadS }],
    paused: false,
    ended: false,
    seeking: false,
    readyState: aheadS > 0 ? 4 : 2,
    playbackRate: 1,
    width: 854,
    height: 480,
    droppedFrames: 0,
    totalFrames: 0,
    decodedBytes: Number.NaN,
    failed: false,
    resting: false,
    ...other,
  };
}

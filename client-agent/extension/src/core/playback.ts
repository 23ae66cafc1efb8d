/**
 * The state machine of one player: readings go in, a CTA-5004 state comes out, and what a viewer suffered.
 *
 * It believes readings, not events: an event only says that it is time to read. So a page that swallows or
 * invents events changes nothing.
 */

import { bufferedAheadS } from "./ranges";
import type { PlayerState, Reading } from "./words";

const HAVE_FUTURE_DATA = 3;
/** A playhead that stands for so long with nothing ahead is a stall, whatever readyState says. */
const FROZEN_MS = 1500;
const EMPTY_S = 0.5;
/** Pages hold a starved player by rate 0 until so much is there, at most; it is not the viewer who pauses. */
const REFILLED_S = 10;
/** A longer gap between readings is a machine asleep, not a stall. */
export const LONGEST_STEP_MS = 10_000;

export interface Playback {
  readonly state: PlayerState;
  /** Seconds ahead of the playhead. */
  readonly bufferS: number;
  /** Seconds of media after the playhead; undefined: live, or not known. */
  readonly remainingS: number | undefined;
  readonly stallCount: number;
  readonly stalledMs: number;
}

/** Beyond 30 days a duration means "no end": some live players set such numbers. */
const LONGEST_S = 30 * 86_400;

/** Seconds of media after the playhead, at least what is buffered; undefined where there is no known end. */
export function remainingS(reading: Reading, bufferS: number): number | undefined {
  const { durationS, positionS } = reading;
  if (!(durationS > 0 && durationS <= LONGEST_S) || !Number.isFinite(positionS)) return undefined;
  return Math.max(bufferS, durationS - positionS, 0);
}

export class PlaybackMachine {
  #state: PlayerState | undefined;
  #began = false;
  /** A seek is not over before playback goes on. */
  #afterSeek = false;
  /** Pausing within a stall does not make two of it. */
  #inStall = false;
  #stallCount = 0;
  #stalledMs = 0;
  #lastMs: number | undefined;
  #lastPositionS = Number.NaN;
  #movedMs = 0;

  /** Takes a reading made at `nowMs` (any clock that never runs backwards). */
  observe(reading: Reading, nowMs: number): Playback {
    const bufferS = bufferedAheadS(reading.buffered, reading.positionS);
    const stepMs = this.#lastMs === undefined ? 0 : Math.min(Math.max(0, nowMs - this.#lastMs), LONGEST_STEP_MS);
    if (this.#state === "REBUFFERING") this.#stalledMs += stepMs;
    if (reading.positionS !== this.#lastPositionS || this.#lastMs === undefined) {
      this.#movedMs = nowMs;
      this.#lastPositionS = reading.positionS;
    } else if (nowMs - (this.#lastMs ?? nowMs) > LONGEST_STEP_MS) {
      this.#movedMs = nowMs;
    }
    this.#lastMs = nowMs;

    const state = this.#next(reading, bufferS, nowMs);
    if (state === "REBUFFERING" && !this.#inStall) {
      this.#inStall = true;
      this.#stallCount += 1;
    } else if (state !== "REBUFFERING" && state !== "PAUSED") {
      this.#inStall = false;
    }
    this.#state = state;
    return {
      state,
      bufferS,
      remainingS: remainingS(reading, bufferS),
      stallCount: this.#stallCount,
      stalledMs: this.#stalledMs,
    };
  }

  /** From top to bottom, the first that holds. */
  #next(reading: Reading, bufferS: number, nowMs: number): PlayerState {
    if (reading.failed) return "FATAL_ERROR";
    if (reading.ended) return "ENDED";
    if (reading.seeking) {
      this.#afterSeek = this.#began;
      return this.#began ? "SEEKING" : reading.paused ? "PAUSED" : "STARTING";
    }
    if (reading.paused) return "PAUSED";
    const held = reading.playbackRate === 0;
    if (held && bufferS > (this.#inStall ? REFILLED_S : EMPTY_S)) return "PAUSED";
    const frozen = bufferS <= EMPTY_S && nowMs - this.#movedMs >= FROZEN_MS;
    if (held || frozen || reading.readyState < HAVE_FUTURE_DATA) {
      // A stream that is never closed stands on its last frame: nothing more could come.
      if (this.#began && (remainingS(reading, bufferS) ?? EMPTY_S) < EMPTY_S) return "ENDED";
      if (!this.#began) return "STARTING";
      return this.#afterSeek ? "SEEKING" : "REBUFFERING";
    }
    this.#began = true;
    this.#afterSeek = false;
    return "PLAYING";
  }
}

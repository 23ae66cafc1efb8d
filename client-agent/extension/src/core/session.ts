/** One session: one element playing one source. Decides when to report, and what. */

import { GoalWatch } from "./goal";
import { type Playback, PlaybackMachine } from "./playback";
import { QualityWatch, RateMeter } from "./quality";
import type { Picture, PlayerState, Reading, Report, ReportCause } from "./words";

const DAY_MS = 86_400_000;
const PERIOD_MS = 1000;
/** A timer that comes a little early must not cost a second. */
const SLACK_MS = 100;
/** A viewer who has paused is reported once a second for a minute, then seldom. */
const IDLE_AFTER_MS = 60_000;
const IDLE_PERIOD_MS = 4000;
/** Changes are told at once, but a page that flaps does not flood. */
const LEAST_GAP_MS = 100;
const MOST_RATE = 16;

const IDLE: ReadonlySet<PlayerState> = new Set(["PAUSED", "ENDED", "FATAL_ERROR", "QUIT"]);

export interface Spoken {
  readonly report: Report;
  readonly picture: Picture;
}

export class Session {
  readonly id: string;
  readonly #kind: "video" | "audio";
  readonly #machine = new PlaybackMachine();
  readonly #goal = new GoalWatch();
  readonly #quality = new QualityWatch();
  readonly #rate = new RateMeter();
  #sequence = 0;
  #last: Playback | undefined;
  #lastReading: Reading | undefined;
  #lastWallMs = 0;
  #saidMs = Number.NEGATIVE_INFINITY;
  #saidStalls = 0;
  #idleSinceMs: number | undefined;
  #pending: ReportCause | undefined;

  /** `id`: 1 to 64 of A-Z a-z 0-9 . _ - */
  constructor(id: string, kind: "video" | "audio") {
    this.id = id;
    this.#kind = kind;
  }

  get state(): PlayerState | undefined {
    return this.#last?.state;
  }

  /** The playhead stands by the viewer's will, since then (ms of the caller's clock). */
  get idleSinceMs(): number | undefined {
    return this.#idleSinceMs;
  }

  /**
   * Takes a reading. `nowMs` is a clock that never runs backwards, `wallMs` the time of day.
   * Returns what is to be reported now, or undefined. `asked`: somebody wants to hear, though nothing may have changed.
   */
  observe(reading: Reading, nowMs: number, wallMs: number, asked = false): Spoken | undefined {
    const before = this.#last?.state;
    const playback = this.#machine.observe(reading, nowMs);
    this.#last = playback;
    this.#lastReading = reading;
    if (playback.state === "SEEKING" && before !== "SEEKING") this.#goal.restart();
    this.#goal.observe(playback.bufferS, playback.remainingS, playback.state === "PLAYING", reading.resting, nowMs);
    const switched = this.#quality.observe(reading.width, reading.height);
    if (switched) this.#rate.restart();
    this.#rate.observe(reading.decodedBytes, reading.positionS);
    if (!IDLE.has(playback.state)) this.#idleSinceMs = undefined;
    else this.#idleSinceMs ??= nowMs;

    if (before !== playback.state) this.#pending = "STATE_CHANGE";
    else if (switched) this.#pending ??= "QUALITY_SWITCH";
    const sinceMs = nowMs - this.#saidMs;
    if (this.#pending !== undefined) {
      return sinceMs >= LEAST_GAP_MS ? this.#say(this.#pending, nowMs, wallMs) : undefined;
    }
    const dueMs = asked ? LEAST_GAP_MS : this.#periodMs(nowMs) - SLACK_MS;
    return sinceMs >= dueMs ? this.#say("PERIODIC", nowMs, wallMs) : undefined;
  }

  /** The last report: the viewer left, or the page took the player away. */
  quit(nowMs: number, wallMs: number): Spoken | undefined {
    if (this.#last === undefined || this.#last.state === "QUIT") return undefined;
    this.#last = { ...this.#last, state: "QUIT" };
    return this.#say("STATE_CHANGE", nowMs, wallMs);
  }

  #periodMs(nowMs: number): number {
    const idle = this.#idleSinceMs !== undefined && nowMs - this.#idleSinceMs > IDLE_AFTER_MS;
    return idle ? IDLE_PERIOD_MS : PERIOD_MS;
  }

  #say(cause: ReportCause, nowMs: number, wallMs: number): Spoken | undefined {
    const playback = this.#last;
    const reading = this.#lastReading;
    if (playback === undefined || reading === undefined) return undefined;
    this.#pending = undefined;
    this.#saidMs = nowMs;
    this.#sequence += 1;
    // A time of day that is set back waits until it has caught up.
    this.#lastWallMs = Math.max(this.#lastWallMs, whole(wallMs, Number.MAX_SAFE_INTEGER));
    const starved = playback.stallCount > this.#saidStalls || playback.state === "REBUFFERING";
    this.#saidStalls = playback.stallCount;
    const report: Report = {
      session_id: this.id,
      sequence_number: this.#sequence,
      timestamp_ms: this.#lastWallMs,
      cause,
      player_state: playback.state,
      buffer_length_ms: whole(playback.bufferS * 1000, DAY_MS),
      encoded_bitrate_kbps: this.#rate.kbps,
      target_buffer_ms: whole(this.#goal.goalS * 1000, DAY_MS),
      starved,
      playback_rate: IDLE.has(playback.state) ? 0 : bounded(Math.abs(reading.playbackRate), MOST_RATE),
      ...(playback.remainingS === undefined
        ? {}
        : { remaining_media_ms: whole(playback.remainingS * 1000, 365 * DAY_MS) }),
      stall_count: playback.stallCount,
      stall_duration_ms: whole(playback.stalledMs, 30 * DAY_MS),
      player_name: `html5-${this.#kind}`,
    };
    return {
      report,
      picture: {
        kind: this.#kind,
        height: this.#quality.height,
        qualitySwitches: this.#quality.switches,
        droppedFrames: whole(reading.droppedFrames, Number.MAX_SAFE_INTEGER),
        totalFrames: whole(reading.totalFrames, Number.MAX_SAFE_INTEGER),
      },
    };
  }
}

/** From 0 to `most`; what is not a number is 0. */
function bounded(value: number, most: number): number {
  return Number.isNaN(value) ? 0 : Math.min(Math.max(0, value), most);
}

function whole(value: number, most: number): number {
  return Math.round(bounded(value, most));
}

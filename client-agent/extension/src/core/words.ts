/**
 * The words of the extension's core. States and causes are those of CTA-5004 (CMCD) as the wire spells them.
 * Units stand at the end of names: S seconds, Ms milliseconds, Kbps kilobits per second.
 */

export type PlayerState =
  | "STARTING"
  | "PLAYING"
  | "SEEKING"
  | "REBUFFERING"
  | "PAUSED"
  | "ENDED"
  | "FATAL_ERROR"
  | "QUIT";

export type ReportCause = "PERIODIC" | "STATE_CHANGE" | "QUALITY_SWITCH";

/** A piece of buffered media, seconds of media time. */
export interface Range {
  readonly startS: number;
  readonly endS: number;
}

/** What a media element said at one moment. Numbers may be NaN or infinite: a page chooses some of them. */
export interface Reading {
  readonly positionS: number;
  /** NaN before it is known, Infinity for a live stream. */
  readonly durationS: number;
  readonly buffered: readonly Range[];
  readonly paused: boolean;
  readonly ended: boolean;
  readonly seeking: boolean;
  /** HTMLMediaElement.readyState, 0 to 4. */
  readonly readyState: number;
  readonly playbackRate: number;
  readonly width: number;
  readonly height: number;
  readonly droppedFrames: number;
  readonly totalFrames: number;
  /** Encoded bytes decoded so far, sound included; NaN where the browser does not tell. */
  readonly decodedBytes: number;
  readonly failed: boolean;
  /** The player asks for nothing although it could: it holds what it aims at. */
  readonly resting: boolean;
}

/** One report, in the fields of steerline.report.v1.PlaybackReport, without the flows. */
export interface Report {
  readonly session_id: string;
  readonly sequence_number: number;
  readonly timestamp_ms: number;
  readonly cause: ReportCause;
  readonly player_state: PlayerState;
  readonly buffer_length_ms: number;
  readonly encoded_bitrate_kbps: number;
  readonly target_buffer_ms: number;
  readonly starved: boolean;
  readonly playback_rate: number;
  /** Absent where the media has no end or its end is not known. */
  readonly remaining_media_ms?: number;
  readonly stall_count: number;
  readonly stall_duration_ms: number;
  readonly player_name: string;
}

/** What stays in the browser: shown to the viewer, never sent. */
export interface Picture {
  readonly kind: "video" | "audio";
  readonly height: number;
  readonly qualitySwitches: number;
  readonly droppedFrames: number;
  readonly totalFrames: number;
}

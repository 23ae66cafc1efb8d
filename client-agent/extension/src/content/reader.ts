/**
 * Reads media elements through the getters of the prototypes, taken when this script began, in its own world:
 * what a page puts over an element's properties is not seen here.
 */

import { MOST_RANGES } from "../core/ranges";
import type { Sign } from "../core/roster";
import type { Range, Reading } from "../core/words";

function getter<T extends object, V>(prototype: T, name: string): (of: T) => V {
  const get = Object.getOwnPropertyDescriptor(prototype, name)?.get;
  return (of) => get?.call(of) as V;
}

const media = HTMLMediaElement.prototype;
const video = HTMLVideoElement.prototype;
const times = TimeRanges.prototype;
const currentTime = getter<HTMLMediaElement, number>(media, "currentTime");
const duration = getter<HTMLMediaElement, number>(media, "duration");
const buffered = getter<HTMLMediaElement, TimeRanges>(media, "buffered");
const paused = getter<HTMLMediaElement, boolean>(media, "paused");
const ended = getter<HTMLMediaElement, boolean>(media, "ended");
const seeking = getter<HTMLMediaElement, boolean>(media, "seeking");
const readyState = getter<HTMLMediaElement, number>(media, "readyState");
const networkState = getter<HTMLMediaElement, number>(media, "networkState");
const playbackRate = getter<HTMLMediaElement, number>(media, "playbackRate");
const autoplay = getter<HTMLMediaElement, boolean>(media, "autoplay");
const error = getter<HTMLMediaElement, MediaError | null>(media, "error");
const currentSrc = getter<HTMLMediaElement, string>(media, "currentSrc");
const srcObject = getter<HTMLMediaElement, unknown>(media, "srcObject");
const videoWidth = getter<HTMLVideoElement, number>(video, "videoWidth");
const videoHeight = getter<HTMLVideoElement, number>(video, "videoHeight");
const videoBytes = getter<HTMLMediaElement, number | undefined>(media, "webkitVideoDecodedByteCount");
const audioBytes = getter<HTMLMediaElement, number | undefined>(media, "webkitAudioDecodedByteCount");
const length = getter<TimeRanges, number>(times, "length");
const { start, end } = times;
const quality = video.getVideoPlaybackQuality as HTMLVideoElement["getVideoPlaybackQuality"] | undefined;

const HAVE_ENOUGH_DATA = 4;
const NETWORK_IDLE = 1;
const NETWORK_LOADING = 2;

function ranges(element: HTMLMediaElement): Range[] {
  const all = buffered(element);
  const count = Math.min(length(all), MOST_RANGES);
  return Array.from({ length: count }, (_, i) => ({ startS: start.call(all, i), endS: end.call(all, i) }));
}

/** An element that will play by itself once it has data: its `paused` is still true then. */
function aboutToPlay(element: HTMLMediaElement): boolean {
  return (
    autoplay(element) &&
    currentTime(element) === 0 &&
    readyState(element) < HAVE_ENOUGH_DATA &&
    networkState(element) === NETWORK_LOADING
  );
}

/** What the element plays, to notice a change; compared here, and never sent. A camera or a call has none. */
export function sourceOf(element: HTMLMediaElement): string {
  const object = srcObject(element);
  if (object instanceof MediaStream) return "";
  // A MediaSource in a worker, say: there is no URL then.
  return object === null || object === undefined ? currentSrc(element) : "object:";
}

export function signOf(element: HTMLMediaElement): Sign {
  return {
    hasSource: sourceOf(element) !== "",
    paused: paused(element) && !aboutToPlay(element),
    durationS: duration(element),
  };
}

export function isPaused(element: HTMLMediaElement): boolean {
  return paused(element);
}

export function isVideo(element: HTMLMediaElement): element is HTMLVideoElement {
  return element instanceof HTMLVideoElement;
}

/** The browser itself fetches (no script does), and has enough. */
function fetchesNothing(element: HTMLMediaElement): boolean {
  return networkState(element) === NETWORK_IDLE && /^https?:/.test(currentSrc(element));
}

export function read(element: HTMLMediaElement): Reading {
  const frames = isVideo(element) ? quality?.call(element) : undefined;
  return {
    positionS: currentTime(element),
    durationS: duration(element),
    buffered: ranges(element),
    paused: paused(element) && !aboutToPlay(element),
    ended: ended(element),
    seeking: seeking(element),
    readyState: readyState(element),
    playbackRate: playbackRate(element),
    width: isVideo(element) ? videoWidth(element) : 0,
    height: isVideo(element) ? videoHeight(element) : 0,
    droppedFrames: frames?.droppedVideoFrames ?? 0,
    totalFrames: frames?.totalVideoFrames ?? 0,
    decodedBytes: (videoBytes(element) ?? Number.NaN) + (audioBytes(element) ?? Number.NaN),
    failed: error(element) !== null,
    resting: fetchesNothing(element),
  };
}

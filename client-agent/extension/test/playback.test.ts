import { describe, expect, it } from "vitest";
import { PlaybackMachine } from "../src/core/playback";
import type { Reading } from "../src/core/words";
import { reading } from "./readings";

/** Feeds one reading each half second; returns the last playback and all states, repeats left out. */
function feed(readings: Reading[], machine = new PlaybackMachine()) {
  const states: string[] = [];
  let last = machine.observe(readings[0] as Reading, 0);
  readings.forEach((one, index) => {
    if (index > 0) last = machine.observe(one, index * 500);
    if (states.at(-1) !== last.state) states.push(last.state);
  });
  return { last, states };
}
const playing = (from: number, aheadS: number) => reading(from, aheadS);

describe("player states", () => {
  it("start-up is no stall, however long it takes", () => {
    const empty = reading(0, 0, { readyState: 0, buffered: [] });
    const { last, states } = feed([...Array<Reading>(20).fill(empty), playing(0, 5), playing(0.5, 5)]);
    expect(states).toEqual(["STARTING", "PLAYING"]);
    expect(last.stallCount).toBe(0);
  });

  it("from waiting to playing is one stall, and its time counts", () => {
    const dry = reading(5, 0);
    const { last, states } = feed([playing(4.5, 0.5), dry, dry, dry, dry, playing(5, 3), playing(5.5, 3)]);
    expect(states).toEqual(["PLAYING", "REBUFFERING", "PLAYING"]);
    expect([last.stallCount, last.stalledMs]).toEqual([1, 2000]);
  });

  it("a seek that waits for data is a seek, not a stall", () => {
    const { last, states } = feed([
      playing(5, 20),
      reading(300, 0, { seeking: true, readyState: 1 }),
      reading(300, 0, { readyState: 2 }),
      playing(300, 2),
    ]);
    expect(states).toEqual(["PLAYING", "SEEKING", "PLAYING"]);
    expect(last.stallCount).toBe(0);
  });

  it("pausing within a stall does not make two of it, and the pause is not stalled time", () => {
    const dry = reading(5, 0);
    const paused = reading(5, 0, { paused: true });
    const { last } = feed([playing(4.5, 0.5), dry, dry, paused, paused, paused, dry, dry, playing(5, 2)]);
    expect(last.stallCount).toBe(1);
    expect(last.stalledMs).toBe(2000);
  });

  it("a playhead that stands with nothing ahead is a stall, though readyState says otherwise", () => {
    const lie = reading(5, 0.2, { readyState: 4 });
    const { states } = feed([playing(4.5, 0.7), lie, lie, lie, lie, lie]);
    expect(states).toEqual(["PLAYING", "REBUFFERING"]);
  });

  it("a page that holds a starved player until it has refilled goes on stalling, and then pauses", () => {
    const hold = (aheadS: number) => reading(5.5, aheadS, { playbackRate: 0 });
    expect(feed([playing(5, 9), hold(0.1), hold(2), playing(6, 3)]).states).toEqual([
      "PLAYING",
      "REBUFFERING",
      "PLAYING",
    ]);
    expect(feed([playing(5, 9), hold(0.1), hold(30)]).states).toEqual(["PLAYING", "REBUFFERING", "PAUSED"]);
  });

  it("a page that holds an empty player by rate 0 stalls it, and one with a full buffer pauses it", () => {
    expect(feed([playing(5, 9), reading(5.5, 0.1, { playbackRate: 0 })]).states).toEqual(["PLAYING", "REBUFFERING"]);
    expect(feed([playing(5, 9), reading(5.5, 9, { playbackRate: 0 })]).states).toEqual(["PLAYING", "PAUSED"]);
  });

  it("the last frame of a stream that is never closed is the end, not a stall", () => {
    const end = reading(599.9, 0, { readyState: 2 });
    expect(feed([playing(599, 0.9), end, end, end]).states).toEqual(["PLAYING", "ENDED"]);
  });

  it.each([
    [{ ended: true, paused: true }, "ENDED"],
    [{ failed: true }, "FATAL_ERROR"],
    [{ paused: true }, "PAUSED"],
  ])("%j is %s", (other, state) => {
    expect(feed([playing(1, 5), reading(2, 5, other)]).last.state).toBe(state);
  });

  it("an hour of sleep within a stall is not an hour of stall", () => {
    const machine = new PlaybackMachine();
    machine.observe(playing(5, 5), 0);
    machine.observe(reading(5, 0), 500);
    expect(machine.observe(reading(5, 0), 3_600_500).stalledMs).toBeLessThanOrEqual(10_000);
  });
});

describe("remaining media", () => {
  it.each([
    ["what lies after the playhead", 600, 590],
    ["unknown for a live stream", Number.POSITIVE_INFINITY, undefined],
    ["unknown before it is known", Number.NaN, undefined],
    ["unknown for a duration of 0", 0, undefined],
    ["unknown for one beyond reason", 2 ** 32, undefined],
    ["never less than what is buffered", 12, 20],
  ])("%s", (_name, durationS, expected) => {
    const machine = new PlaybackMachine();
    expect(machine.observe(reading(10, 20, { durationS }), 0).remainingS).toBe(expected);
  });
});

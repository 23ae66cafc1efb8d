import { describe, expect, it } from "vitest";
import { makeRoom, worthASession } from "../src/core/roster";
import { Session } from "../src/core/session";
import type { Report } from "../src/core/words";
import { reading } from "./readings";

const WALL = 1_800_000_000_000;

describe("a session's reports", () => {
  it("come once a second while nothing changes, though it is read more often", () => {
    const session = new Session("a", "video");
    const causes: string[] = [];
    for (let ms = 0; ms <= 5000; ms += 250) {
      const said = session.observe(reading(ms / 1000, 20), ms, WALL + ms);
      if (said) causes.push(`${ms} ${said.report.cause}`);
    }
    expect(causes).toEqual(["0 STATE_CHANGE", ...[1, 2, 3, 4, 5].map((s) => `${s * 1000} PERIODIC`)]);
  });

  it("come at each change of state and quality", () => {
    const session = new Session("a", "video");
    session.observe(reading(0, 20), 0, WALL);
    const stalled = session.observe(reading(0.2, 0), 200, WALL);
    expect(stalled?.report).toMatchObject({ cause: "STATE_CHANGE", player_state: "REBUFFERING", starved: true });
    session.observe(reading(0.2, 3), 400, WALL);
    const switched = session.observe(reading(0.4, 3, { width: 640, height: 360 }), 600, WALL);
    expect(switched?.report.cause).toBe("QUALITY_SWITCH");
    expect(switched?.picture).toMatchObject({ height: 360, qualitySwitches: 1 });
  });

  it("are few, however a page flaps, and the last state is told", () => {
    const session = new Session("a", "video");
    let count = 0;
    for (let ms = 0; ms < 1000; ms += 5) {
      if (session.observe(reading(1, 9, { paused: (ms / 5) % 2 === 0 }), ms, WALL + ms)) count += 1;
    }
    expect(count).toBeLessThanOrEqual(11);
    expect(session.observe(reading(1, 9), 1100, WALL)?.report.player_state).toBe("PLAYING");
  });

  it("come when somebody asks, though nothing has changed; but do not flood", () => {
    const session = new Session("a", "video");
    session.observe(reading(0, 20), 0, WALL);
    expect(session.observe(reading(0.3, 20), 300, WALL)).toBeUndefined();
    expect(session.observe(reading(0.3, 20), 301, WALL, true)?.report.cause).toBe("PERIODIC");
    expect(session.observe(reading(0.3, 20), 350, WALL, true)).toBeUndefined();
  });

  it("after an hour of sleep go on as if it had been a moment: one report, no stall of an hour", () => {
    const session = new Session("a", "video");
    for (let s = 0; s <= 20; s += 1) session.observe(reading(s, 20), s * 1000, WALL + s * 1000);
    const hour = 3_600_000;
    const woken = [0, 1, 2].map((s) =>
      session.observe(reading(20 + s, 20 - s), 21_000 + hour + s * 1000, WALL + 21_000 + hour + s * 1000),
    );
    expect(woken.map((said) => said?.report.sequence_number)).toEqual([22, 23, 24]);
    expect(woken[2]?.report).toMatchObject({ player_state: "PLAYING", stall_count: 0, stall_duration_ms: 0 });
  });

  it("count up and never go back in time, though the clock is set back", () => {
    const session = new Session("a", "video");
    const reports = [0, 1000, 2000].map((ms, i) => session.observe(reading(i, 9), ms, WALL - i * 3_600_000)?.report);
    expect(reports.map((r) => [r?.sequence_number, r?.timestamp_ms])).toEqual([
      [1, WALL],
      [2, WALL],
      [3, WALL],
    ]);
  });

  it("grow seldom when the viewer has paused for a minute", () => {
    const session = new Session("a", "video");
    let count = 0;
    for (let ms = 0; ms < 180_000; ms += 1000) {
      if (session.observe(reading(1, 9, { paused: true }), ms, WALL + ms)) count += 1;
    }
    expect(count).toBeGreaterThan(60);
    expect(count).toBeLessThan(100);
  });

  it("end with QUIT, once", () => {
    const session = new Session("a", "video");
    session.observe(reading(1, 9), 0, WALL);
    expect(session.quit(10, WALL)?.report).toMatchObject({
      player_state: "QUIT",
      sequence_number: 2,
      playback_rate: 0,
    });
    expect(session.quit(20, WALL)).toBeUndefined();
  });

  it("stay within the contract's ranges, whatever a page makes its numbers", () => {
    const numbers = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -1, 0, 1e308, 2 ** 53];
    const whole = (value: unknown, most: number) =>
      Number.isInteger(value) && Number(value) >= 0 && Number(value) <= most;
    for (const n of numbers) {
      for (const m of numbers) {
        const session = new Session("a", "video");
        const lie = reading(n, 1, {
          positionS: n,
          durationS: m,
          playbackRate: m,
          width: n,
          height: m,
          droppedFrames: m,
          decodedBytes: n,
          buffered: [
            { startS: n, endS: m },
            { startS: 0, endS: m },
          ],
        });
        const report = session.observe(lie, 0, WALL)?.report as Report;
        expect(whole(report.buffer_length_ms, 86_400_000)).toBe(true);
        expect(whole(report.remaining_media_ms ?? 0, 365 * 86_400_000)).toBe(true);
        expect(report.playback_rate >= 0 && report.playback_rate <= 16).toBe(true);
        expect(JSON.stringify(report)).not.toContain("null");
      }
    }
  });
});

describe("which elements are sessions", () => {
  it("not one of 0 seconds, not one without a source, not one that waits to be played", () => {
    const good = { hasSource: true, paused: false, durationS: Number.NaN };
    expect(worthASession(good)).toBe(true);
    expect(
      [{ durationS: 0 }, { hasSource: false }, { paused: true }].map((o) => worthASession({ ...good, ...o })),
    ).toEqual([false, false, false]);
  });

  it("one more than there are seats takes that of the longest idle, and of none in play", () => {
    const seats = (idle: (number | undefined)[]) => Array.from({ length: 16 }, (_, i) => ({ idleSinceMs: idle[i] }));
    expect(makeRoom([])).toBe(-1);
    expect(makeRoom(seats([undefined, 900, 300, 500]))).toBe(2);
    expect(makeRoom(seats([]))).toBeUndefined();
  });
});

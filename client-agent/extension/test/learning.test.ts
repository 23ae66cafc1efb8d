import { describe, expect, it } from "vitest";
import { GoalWatch } from "../src/core/goal";
import { QualityWatch, RateMeter } from "../src/core/quality";
import { RestWatch } from "../src/core/rest";

/** The buffer after each second of play. */
function learn(buffers: number[], remainingS: number | undefined = 600, resting = false): number {
  const goal = new GoalWatch();
  buffers.forEach((bufferS, second) => {
    goal.observe(bufferS, remainingS, true, resting, second * 1000);
  });
  return goal.goalS;
}
const ramp = (to: number) => Array.from({ length: to }, (_, i) => i + 1);

describe("the buffer a player aims at", () => {
  it("is the peak that it holds, by segments of 4 s too", () => {
    const saw = Array.from({ length: 40 }, (_, i) => 30 - (i % 4));
    expect(learn([...ramp(30), ...saw])).toBe(30);
  });
  it("is not known while the buffer still grows", () => {
    expect(learn(ramp(60))).toBe(0);
  });
  it("is not what a scarce network leaves of it", () => {
    const fallen = Array.from({ length: 60 }, () => 8);
    expect(learn([...ramp(30), ...ramp(30).reverse(), ...fallen])).toBe(0);
  });
  it("is not what the end of the film leaves of it", () => {
    expect(learn([...ramp(20), ...Array.from({ length: 40 }, () => 20)], 20)).toBe(0);
  });
  it("is believed within some seconds where the player is seen to rest", () => {
    const held = [10, 10, 10, 10, 10];
    expect([learn([...ramp(10), ...held]), learn([...ramp(10), ...held], 600, true)]).toEqual([0, 10]);
    expect(learn(ramp(60), 600, true)).toBe(0);
  });
  it("is learnt from a live stream as well", () => {
    expect(learn([...ramp(6), ...Array.from({ length: 20 }, () => 6)], undefined)).toBe(6);
  });
});

describe("a player that rests", () => {
  /** Requests of `busyMs` each 2 s, for 10 s. */
  const watch = (busyMs: number) => {
    const rest = new RestWatch();
    for (let ms = 0; ms < 10_000; ms += 2000) rest.took(ms, ms + busyMs);
    return rest;
  };
  it("asks for the next piece only when it has played one", () => {
    expect([watch(600).rests(10_000), watch(1900).rests(10_000)]).toEqual([true, false]);
  });
  it("is not known from one request, nor long after the last", () => {
    const rest = new RestWatch();
    expect(rest.rests(0)).toBe(false);
    rest.took(0, 500);
    expect([rest.rests(600), watch(600).rests(60_000)]).toEqual([false, false]);
  });
  it("is not told by sound alone while the picture is fetched all the time", () => {
    const rest = watch(200);
    for (let ms = 0; ms < 10_000; ms += 1000) rest.took(ms + 10, ms + 990);
    expect(rest.rests(10_000)).toBe(false);
  });
  it("survives nonsense", () => {
    const rest = new RestWatch();
    for (const n of [Number.NaN, -1, 1e308, Number.POSITIVE_INFINITY]) rest.took(n, 5);
    for (let i = 0; i < 1000; i += 1) rest.took(5, 1);
    expect(rest.rests(10)).toBe(false);
  });
});

describe("quality", () => {
  it("counts changes of size, neither the first nor none", () => {
    const watch = new QualityWatch();
    const sizes: [number, number][] = [
      [0, 0],
      [640, 360],
      [640, 360],
      [854, 480],
      [0, 0],
      [854, 480],
      [640, 360],
    ];
    expect(sizes.map(([w, h]) => watch.observe(w, h))).toEqual([false, false, false, true, false, false, true]);
    expect([watch.switches, watch.height]).toEqual([2, 360]);
  });
});

describe("the rate of what plays", () => {
  it("is bytes over media time", () => {
    const meter = new RateMeter();
    for (let second = 0; second <= 7; second += 1) meter.observe(second * 325_000, 100 + second);
    expect(meter.kbps).toBe(2600);
  });
  it("survives jumps, resets and browsers that do not tell", () => {
    const meter = new RateMeter();
    for (const [bytes, at] of [
      [0, 0],
      [1e6, 300],
      [1e6, 301],
      [5, 302],
      [Number.NaN, 303],
      [9, Number.NaN],
    ] as const)
      meter.observe(bytes, at);
    expect(meter.kbps).toBe(0);
  });
});

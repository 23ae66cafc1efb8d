import { describe, expect, it } from "vitest";
import { GoalWatch } from "../src/core/goal";
import { QualityWatch, RateMeter } from "../src/core/quality";

/** The buffer after each second of play. */
function learn(buffers: number[], remainingS: number | undefined = 600): number {
  const goal = new GoalWatch();
  buffers.forEach((bufferS, second) => {
    goal.observe(bufferS, remainingS, true, second * 1000);
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
  it("is learnt from a live stream as well", () => {
    expect(learn([...ramp(6), ...Array.from({ length: 20 }, () => 6)], undefined)).toBe(6);
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

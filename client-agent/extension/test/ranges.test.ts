import { describe, expect, it } from "vitest";
import { bufferedAheadS, orderly } from "../src/core/ranges";

const r = (startS: number, endS: number) => ({ startS, endS });

describe("buffered playtime", () => {
  it.each([
    ["one range", [r(0, 30)], 10, 20],
    ["the range of the playhead, not the last, after seeking back", [r(0, 12), r(100, 160)], 10, 2],
    ["the last range where the playhead is in it", [r(0, 12), r(100, 160)], 120, 40],
    ["nothing in a gap", [r(0, 12), r(100, 160)], 50, 0],
    ["nothing at the end of a range", [r(0, 12)], 12, 0],
    ["nothing after everything", [r(0, 12)], 13, 0],
    ["across a gap that browsers play over", [r(0, 12), r(12.05, 20)], 10, 10],
    ["a first frame a little late", [r(0.08, 10.08)], 0, 10],
    ["no ranges", [], 0, 0],
    ["ranges that are out of order and overlap", [r(20, 40), r(0, 25)], 5, 35],
    ["nonsense is left out", [r(Number.NaN, 5), r(5, Number.NaN), r(9, 3), r(-5, 100), r(0, 4)], 1, 3],
    ["a range without an end says nothing", [r(0, Number.POSITIVE_INFINITY)], 1, 0],
    ["a playhead that is no number", [r(0, 4)], Number.NaN, 0],
  ])("%s", (_name, ranges, position, expected) => {
    expect(bufferedAheadS(ranges, position)).toBeCloseTo(expected, 9);
  });

  it("is bounded, whatever a page makes of its ranges", () => {
    const many = Array.from({ length: 100_000 }, (_, i) => r(2 * i, 2 * i + 1));
    expect(orderly(many)).toHaveLength(1000);
  });
});

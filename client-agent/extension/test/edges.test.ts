import { describe, expect, it } from "vitest";
import { fromHost } from "../src/core/messages";
import { MOST_UNDER_WAY, MOST_WAITING, Outbox, waitMs } from "../src/core/outbox";
import { framesOf, patternOf, stationAddress } from "../src/core/sites";

describe("what the host says", () => {
  it.each([
    null,
    7,
    "ack",
    [],
    {},
    { type: "flood" },
    { type: "station", state: "odd" },
    { type: "decision", session_id: "a", kind: "EXPLODE" },
  ])("%j is no message", (value) => {
    expect(fromHost(value)).toBeUndefined();
  });

  it("is bounded and of the stated types", () => {
    const long = fromHost({ type: "rejection", session_id: 5, message: "x".repeat(10_000) });
    expect(long).toEqual({ type: "rejection", session_id: "", message: "x".repeat(1024) });
    expect(fromHost({ type: "advice", session_id: "a", sustainable_kbps: "much" })).toMatchObject({
      sustainable_kbps: 0,
    });
    const flow = {
      protocol: 6,
      client_address: "198.18.1.11",
      client_port: 4,
      server_address: "198.19.0.1",
      server_port: 80,
    };
    const flows = fromHost({ type: "flows", session_id: "a", flows: [flow, null, {}, { ...flow, client_port: 1.5 }] });
    expect(flows).toEqual({ type: "flows", session_id: "a", flows: [flow] });
  });
});

describe("the outbox", () => {
  it("keeps the newest while the host is away", () => {
    const box = new Outbox<number>();
    for (let i = 0; i < 500; i += 1) box.push(i);
    const taken = box.take();
    expect([taken.length, taken.at(-1), box.dropped]).toEqual([MOST_WAITING, 499, 500 - MOST_WAITING]);
  });

  it("has no more under way than a host that hangs may be given, and goes on when it answers or is new", () => {
    const box = new Outbox<number>();
    let sent = 0;
    for (let i = 0; i < 500; i += 1) {
      box.push(i);
      sent += box.take().length;
    }
    expect(sent).toBe(MOST_UNDER_WAY);
    box.acknowledged();
    expect(box.take()).toHaveLength(1);
    box.restart();
    expect(box.take().length).toBeGreaterThan(1);
  });

  it("waits longer after each failure, up to a minute", () => {
    expect([0, 1, 2, 20].map((failures) => waitMs(failures, 1))).toEqual([500, 1000, 2000, 60_000]);
    expect(waitMs(3, 0)).toBe(2000);
  });
});

describe("addresses", () => {
  it("only web pages are sites", () => {
    expect(patternOf("https://video.example:8443/watch?v=1#t")).toBe("*://video.example/*");
    expect(["about:blank", "chrome://settings", "file:///a.mp4", ""].map(patternOf)).toEqual(Array(4).fill(undefined));
  });

  it("frames that look like players are asked for, and no others", () => {
    const frame = { src: "https://player.example/e/1", allow: "autoplay; fullscreen", width: 640, height: 360 };
    const others = [
      { ...frame, src: "https://ad.example/", allow: "" },
      { ...frame, src: "https://pixel.example/", width: 1, height: 1 },
      { ...frame, src: "about:blank" },
      { ...frame, src: "" },
    ];
    expect(framesOf([frame, frame, ...others])).toEqual(["player.example"]);
    expect(framesOf(Array.from({ length: 99 }, (_, n) => ({ ...frame, src: `https://h${n}.example/` })))).toHaveLength(
      8,
    );
  });

  it("reports leave this computer only with TLS", () => {
    expect(stationAddress(" https://station.example:8443/ ")).toBe("https://station.example:8443");
    expect(stationAddress("http://127.0.0.1:8080")).toBe("http://127.0.0.1:8080");
    for (const bad of ["http://station.example", "station", "https://u:p@h/", "https://h/?a=1", "ftp://h"]) {
      expect(() => stationAddress(bad)).toThrow("https://HOST");
    }
  });
});

import { describe, expect, it } from "vitest";
import { Hub, MOST_SESSIONS, type View } from "../src/core/hub";
import { decided, known } from "../src/core/people";
import type { Picture, Report } from "../src/core/words";

const report = (session_id: string, other: Partial<Report> = {}): Report => ({
  session_id,
  sequence_number: 7,
  timestamp_ms: 1000,
  cause: "PERIODIC",
  player_state: "PLAYING",
  buffer_length_ms: 34_000,
  encoded_bitrate_kbps: 0,
  target_buffer_ms: 0,
  starved: false,
  playback_rate: 1,
  stall_count: 0,
  stall_duration_ms: 0,
  player_name: "html5-video",
  ...other,
});
const picture: Picture = { kind: "video", height: 480, qualitySwitches: 0, droppedFrames: 0, totalFrames: 0 };
const servers = [{ address: "198.19.0.1", port: 443 }];

describe("the sessions of all frames", () => {
  it("a frame that is gone takes its sessions with it, and no others", () => {
    const hub = new Hub();
    hub.report(1, 10, report("a"), picture, servers, 0);
    hub.report(2, 10, report("b"), picture, [], 0);
    expect(hub.frameGone(1, 500)).toEqual([
      expect.objectContaining({
        session_id: "a",
        sequence_number: 8,
        timestamp_ms: 1000,
        player_state: "QUIT",
        servers,
      }),
    ]);
    expect(hub.viewsOf(10).map(({ sessionId }) => sessionId)).toEqual(["b"]);
  });

  it("a session that has quit is told once, and is gone", () => {
    const hub = new Hub();
    hub.report(1, 10, report("a"), picture, servers, 0);
    expect(hub.report(1, 10, report("a", { player_state: "QUIT" }), picture, [], 0)?.player_state).toBe("QUIT");
    expect(hub.report(1, 10, report("a", { player_state: "QUIT" }), picture, [], 0)).toBeUndefined();
    expect([hub.size, hub.frameGone(1, 0)]).toEqual([0, []]);
  });

  it("no frame speaks for the session of another", () => {
    const hub = new Hub();
    hub.report(1, 10, report("a"), picture, servers, 0);
    expect(hub.report(2, 11, report("a"), picture, servers, 0)).toBeUndefined();
  });

  it("know when each was told of last, and by which frame", () => {
    const hub = new Hub();
    expect([hub.toldMs("a"), hub.frameOf("a")]).toEqual([Number.NEGATIVE_INFINITY, undefined]);
    hub.report(3, 10, report("a"), picture, servers, 700);
    expect([hub.toldMs("a"), hub.frameOf("a")]).toEqual([700, 3]);
  });

  it("are bounded", () => {
    const hub = new Hub();
    for (let i = 0; i < 500; i += 1) hub.report(i, 10, report(`s${i}`), picture, servers, 0);
    expect(hub.size).toBe(MOST_SESSIONS);
  });

  it("what the network says stays with the session over its next reports", () => {
    const hub = new Hub();
    hub.report(1, 10, report("a"), picture, servers, 0);
    hub.heard({ type: "assessment", session_id: "a", critical: true }, 0);
    hub.heard({ type: "decision", session_id: "a", kind: "STEER", reason: "r" }, 5);
    hub.heard({ type: "assessment", session_id: "unknown", critical: true }, 0);
    hub.report(1, 10, report("a", { sequence_number: 8 }), picture, servers, 0);
    expect(hub.viewsOf(10)[0]).toMatchObject({ critical: true, decision: { kind: "STEER", atMs: 5 } });
  });
});

describe("the popup's words", () => {
  const view = (other: Partial<View>): View => ({
    sessionId: "a",
    tab: 1,
    report: report("a"),
    picture,
    servers,
    critical: undefined,
    sustainableKbps: undefined,
    decision: undefined,
    rejection: undefined,
    flows: undefined,
    ...other,
  });

  it("say what is known", () => {
    expect(known(view({}))).toEqual(["This video is playing, with 34 seconds in store.", "It comes from 198.19.0.1."]);
    const stalled = report("a", {
      player_state: "REBUFFERING",
      stall_count: 2,
      stall_duration_ms: 1400,
      buffer_length_ms: 0,
    });
    expect(known(view({ report: stalled })).slice(0, 2)).toEqual([
      "This video has frozen, waiting for data, with 0 seconds in store.",
      "It froze 2 times, for 1 second in all.",
    ]);
  });

  it("say what was seen of the picture", () => {
    const seen = { ...picture, qualitySwitches: 1, droppedFrames: 12, totalFrames: 900 };
    expect(known(view({ picture: seen })).slice(1, 3)).toEqual([
      "The picture changed its size once.",
      "This computer left out 12 of 900 pictures.",
    ]);
  });

  it("say what the network makes of it", () => {
    expect(decided(view({}), 0)).toEqual(["The network has not answered yet."]);
    const steered = {
      critical: true,
      decision: { kind: "STEER" as const, reason: "", atMs: 1000 },
      sustainableKbps: 2600,
    };
    expect(decided(view(steered), 13_000)).toEqual([
      "It is running low. The network knows, and makes room for it.",
      "The network moved this video to a line with more room, 12 seconds ago.",
      "At the moment it can carry about 2.6 Mbit/s for this video.",
    ]);
  });
});

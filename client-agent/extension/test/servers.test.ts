import { describe, expect, it } from "vitest";
import { type Answerer, type Asker, http3Port, mediaLike, ServerBook } from "../src/core/servers";

const who = (n: number, http3Port?: number): Answerer => ({
  address: `198.19.0.${n}`,
  port: 443,
  host: `cdn${n}.example`,
  http3Port,
});
const asker = (tab: number, frame = 0, other: Partial<Asker> = {}): Asker => ({
  tab,
  frame,
  origin: "",
  sinceMs: Number.NEGATIVE_INFINITY,
  http3: () => undefined,
  ...other,
});
const addresses = (book: ServerBook, of: Asker, nowMs: number) => book.serversOf(of, nowMs).map((s) => s.address);
const at = (n: number) => who(n).address;

describe("the servers of a tab's media", () => {
  it("stay while a request is open, however long, and age once it has ended", () => {
    const book = new ServerBook();
    book.began(1, 0, "r1", who(1), 0);
    expect(addresses(book, asker(1), 3_600_000)).toEqual([at(1)]);
    book.ended("r1", 3_600_000);
    expect(addresses(book, asker(1), 3_650_000)).toEqual([at(1)]);
    expect(addresses(book, asker(1), 3_800_000)).toEqual([]);
  });

  it("the latest comes first, each once, and other tabs have theirs", () => {
    const book = new ServerBook();
    book.began(1, 0, "a", who(1), 0);
    book.began(1, 0, "b", who(2), 1);
    expect(book.began(1, 0, "c", who(1), 2)).toBe(false);
    expect(book.began(2, 0, "d", who(3), 3)).toBe(true);
    expect(addresses(book, asker(1), 3)).toEqual([at(1), at(2)]);
    book.forget(1);
    expect([addresses(book, asker(1), 3), addresses(book, asker(2), 3)]).toEqual([[], [at(3)]]);
  });

  it("a frame has its own, and those of the tab where it fetches nothing itself", () => {
    const book = new ServerBook();
    book.began(1, 5, "film", who(1), 0);
    book.began(1, 9, "advertisement", who(2), 1);
    expect([5, 9, 0].map((frame) => addresses(book, asker(1, frame), 1))).toEqual([[at(1)], [at(2)], [at(2), at(1)]]);
  });

  it("a service worker fetches for the frames of its origin, and for no others", () => {
    const book = new ServerBook();
    book.began("https://tv.example", -1, "segment", who(1), 0);
    book.began(1, 5, "poster", who(2), 1);
    const tv = { origin: "https://tv.example" };
    expect(addresses(book, asker(1, 5, tv), 1)).toEqual([at(2), at(1)]);
    expect(addresses(book, asker(2, 0, tv), 1)).toEqual([at(1)]);
    expect(addresses(book, asker(2, 0, { origin: "https://other.example" }), 1)).toEqual([]);
  });

  it("are busy while a request is open, or was since the session was told of last", () => {
    const book = new ServerBook();
    const busy = (sinceMs: number) => book.serversOf(asker(1, 0, { sinceMs }), 5000)[0]?.busy;
    book.began(1, 0, "r", who(1), 1000);
    expect(busy(4000)).toBe(true);
    book.ended("r", 2000);
    expect([busy(1500), busy(2500)]).toEqual([true, false]);
  });

  it("carry what is known of their protocol", () => {
    const book = new ServerBook();
    book.began(1, 0, "a", who(1, 8443), 0);
    book.began(1, 0, "b", who(1), 1);
    const http3 = (host: string) => (host === "cdn1.example" ? true : undefined);
    expect(book.serversOf(asker(1, 0, { http3 }), 1)).toEqual([
      { address: at(1), port: 443, busy: true, http3: true, http3_port: 8443 },
    ]);
  });

  it("are bounded", () => {
    const book = new ServerBook();
    for (let i = 0; i < 10_000; i += 1) book.began(i % 300, i % 77, `r${i}`, who(i % 250), 0);
    for (let i = 0; i < 1000; i += 1) book.began(`https://h${i}.example`, -1, `w${i}`, who(i % 250), 0);
    expect(book.serversOf(asker(299), 0).length).toBeLessThanOrEqual(8);
  });
});

describe("which answers carry media", () => {
  const answer = { kind: "xmlhttprequest", path: "/x", contentType: "", contentBytes: Number.NaN };
  it.each([
    [{ kind: "media" }, true],
    [{ contentType: "video/mp4" }, true],
    [{ path: "/v/seg-1.m4s", contentType: "text/plain" }, true],
    [{ contentType: "application/octet-stream", contentBytes: 900_000 }, true],
    [{ contentType: "application/octet-stream", contentBytes: 900 }, false],
    [{ contentType: "application/json", contentBytes: 900_000 }, false],
    [{ kind: "image", path: "/a.mp4" }, false],
  ])("%j carries media: %s", (other, expected) => {
    expect(mediaLike({ ...answer, ...other })).toBe(expected);
  });
});

describe("the port of HTTP/3", () => {
  it.each([
    ['h3=":8443"; ma=86400', 8443],
    ['h3-29=":443"; ma=86400,h3=":444"', 444],
    ['h2="other.example:443", h3=":65535"', 65_535],
    ['h3="other.example:443"', undefined],
    ['h3=":0"', undefined],
    ['h3=":70000"', undefined],
    ["clear", undefined],
    ["", undefined],
  ])("%s: %s", (header, port) => {
    expect(http3Port(header)).toBe(port);
  });
});

/** What is said between frame, background, host and pages. What comes from outside is parsed here, once. */

import type { Picture, Report } from "./words";

export const PROTOCOL = 1;
/** The name under which browsers know the host. */
export const HOST_NAME = "steerline.agent";
export const MEDIA_PORT = "media";

export type FromFrame =
  | { readonly type: "report"; readonly report: Report; readonly picture: Picture }
  /** Hosts that media seems to come from: for asking the viewer, never sent on. */
  | { readonly type: "hosts"; readonly hosts: readonly MediaHost[] };
export type ToFrame =
  | { readonly type: "tick" }
  | { readonly type: "stop" }
  /** This session's connections have changed: report now. */
  | { readonly type: "again"; readonly session_id: string };

/** A host that media comes from, as the page knows it. */
export interface MediaHost {
  readonly name: string;
  /** Its last answer came by HTTP/3; absent: not told. */
  readonly http3?: boolean;
}

/** A server that carries media, as the browser knows it. */
export interface Server {
  /** Textual IPv4 or IPv6 address. */
  readonly address: string;
  /** The URL's port; with Alt-Svc the connection's may differ. */
  readonly port: number;
  /** Media requests to it were under way since the last report. */
  readonly busy?: boolean;
  /** Its last answer came by HTTP/3; absent: not known. */
  readonly http3?: boolean;
  /** The UDP port that it has announced for HTTP/3 (Alt-Svc). */
  readonly http3_port?: number;
}

/** A report as the host and the station's web interface take it. */
export type ServedReport = Report & { readonly servers: readonly Server[] };

export type ToHost =
  | { readonly type: "hello"; readonly protocol: number; readonly version: string; readonly browser: string }
  | { readonly type: "report"; readonly report: ServedReport };

export interface FiveTuple {
  readonly protocol: number;
  readonly client_address: string;
  readonly client_port: number;
  readonly server_address: string;
  readonly server_port: number;
}

export type DecisionWord = "STEER" | "KEEP" | "RELEASE";

/** What the network says about one session. */
export type News =
  | { readonly type: "assessment"; readonly session_id: string; readonly critical: boolean }
  | { readonly type: "advice"; readonly session_id: string; readonly sustainable_kbps: number }
  | { readonly type: "decision"; readonly session_id: string; readonly kind: DecisionWord; readonly reason: string }
  | { readonly type: "rejection"; readonly session_id: string; readonly message: string }
  | { readonly type: "flows"; readonly session_id: string; readonly flows: readonly FiveTuple[] };

export type FromHost =
  | { readonly type: "hello"; readonly protocol: number; readonly version: string; readonly station: string }
  | { readonly type: "station"; readonly state: "connected" | "away" | "none"; readonly message: string }
  /** The host has taken this report off the pipe. */
  | { readonly type: "ack"; readonly session_id: string; readonly sequence_number: number }
  | { readonly type: "error"; readonly message: string }
  /** The connections are others than those of the last report: report now. */
  | { readonly type: "again"; readonly session_id: string }
  | News;

const DECISIONS: ReadonlySet<string> = new Set(["STEER", "KEEP", "RELEASE"]);
const STATION: ReadonlySet<string> = new Set(["connected", "away", "none"]);
const LONGEST_TEXT = 1024;
const MOST_FLOWS = 32;

type Fields = Record<string, unknown>;

/** A message of the host or the station; undefined for one that this version does not know or that is malformed. */
export function fromHost(value: unknown): FromHost | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const fields = value as Fields;
  const text = (name: string) => (typeof fields[name] === "string" ? fields[name].slice(0, LONGEST_TEXT) : undefined);
  const number = (name: string) => (Number.isFinite(fields[name]) ? (fields[name] as number) : undefined);
  const session_id = text("session_id") ?? "";
  switch (fields.type) {
    case "hello":
      return {
        type: "hello",
        protocol: number("protocol") ?? 0,
        version: text("version") ?? "",
        station: text("station") ?? "",
      };
    case "station": {
      const state = text("state") ?? "";
      if (!STATION.has(state)) return undefined;
      return { type: "station", state: state as "connected" | "away" | "none", message: text("message") ?? "" };
    }
    case "ack":
      return { type: "ack", session_id, sequence_number: number("sequence_number") ?? 0 };
    case "error":
      return { type: "error", message: text("message") ?? "" };
    case "again":
      return { type: "again", session_id };
    case "assessment":
      return { type: "assessment", session_id, critical: fields.critical === true };
    case "advice":
      return { type: "advice", session_id, sustainable_kbps: Math.max(0, number("sustainable_kbps") ?? 0) };
    case "decision": {
      const kind = text("kind") ?? "";
      if (!DECISIONS.has(kind)) return undefined;
      return { type: "decision", session_id, kind: kind as DecisionWord, reason: text("reason") ?? "" };
    }
    case "rejection":
      return { type: "rejection", session_id, message: text("message") ?? "" };
    case "flows":
      return { type: "flows", session_id, flows: fiveTuples(fields.flows) };
    default:
      return undefined;
  }
}

function fiveTuples(value: unknown): FiveTuple[] {
  if (!Array.isArray(value)) return [];
  return value.slice(0, MOST_FLOWS).flatMap((one: Fields | null) => {
    if (typeof one !== "object" || one === null) return [];
    const { protocol, client_address, client_port, server_address, server_port } = one;
    if (typeof client_address !== "string" || typeof server_address !== "string") return [];
    if (![protocol, client_port, server_port].every(Number.isInteger)) return [];
    return [{ protocol, client_address, client_port, server_address, server_port } as FiveTuple];
  });
}

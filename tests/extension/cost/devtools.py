"""Chromium's DevTools protocol: heaps and CPU profiles of pages and service workers."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import websocket


class DevTools:
    """One connection to the browser, on this port of loopback."""

    def __init__(self, port: str) -> None:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/version", timeout=10) as answer:
            url = json.load(answer)["webSocketDebuggerUrl"]
        self._socket = websocket.create_connection(url, timeout=60, suppress_origin=True)
        self._last = 0

    def do(self, method: str, session: str = "", **params: Any) -> dict[str, Any]:
        """One command and its result; events are passed over."""
        self._last += 1
        message: dict[str, Any] = {"id": self._last, "method": method, "params": params}
        self._socket.send(json.dumps(message | ({"sessionId": session} if session else {})))
        while True:
            answer: dict[str, Any] = json.loads(self._socket.recv())
            if answer.get("id") == self._last:
                assert "error" not in answer, (method, answer)
                return answer["result"]

    def attach(self, kind: str, prefix: str) -> str:
        """A session with the first target of this kind ("page", "service_worker") whose URL begins so."""
        for target in self.do("Target.getTargets")["targetInfos"]:
            if target["type"] == kind and target["url"].startswith(prefix):
                return self.do("Target.attachToTarget", targetId=target["targetId"], flatten=True)[
                    "sessionId"
                ]
        raise LookupError(f"no {kind} at {prefix}")

    def heap_mb(self, session: str) -> float:
        """JavaScript heap in use after a collection, MB of 1,000,000 bytes."""
        self.do("HeapProfiler.collectGarbage", session)
        return self.do("Runtime.getHeapUsage", session)["usedSize"] / 1e6

    def profile(self, session: str) -> None:
        self.do("Profiler.enable", session)
        self.do("Profiler.setSamplingInterval", session, interval=500)
        self.do("Profiler.start", session)

    def busy_s(self, session: str, prefix: str) -> float:
        """CPU seconds since `profile` in functions of scripts whose URL begins so, and in what they call."""
        profile = self.do("Profiler.stop", session)["profile"]
        nodes = {node["id"]: node for node in profile["nodes"]}
        ours: set[int] = set()

        def mark(node_id: int, inside: bool) -> None:
            node = nodes[node_id]
            inside = inside or node["callFrame"]["url"].startswith(prefix)
            if inside:
                ours.add(node_id)
            for child in node.get("children", []):
                mark(child, inside)

        mark(profile["nodes"][0]["id"], False)
        pairs = zip(profile["samples"], profile["timeDeltas"][1:], strict=False)
        return sum(max(0, delta) for node_id, delta in pairs if node_id in ours) / 1e6

    def close(self) -> None:
        self._socket.close()

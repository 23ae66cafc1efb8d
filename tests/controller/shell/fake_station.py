"""A station for tests: assessments as JSON lines in, what the controller says as JSON lines out.

Run inside the controller's namespace. A line "stall" stops reading for good, "wait S" waits.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Iterator

import grpc
from google.protobuf import json_format

from steerline.steering.v1 import steering_pb2 as pb
from steerline.steering.v1 import steering_pb2_grpc as rpc

STALLED = threading.Event()


def requests() -> Iterator[pb.ConnectRequest]:
    """What is asked on stdin."""
    for line in sys.stdin:
        if line.startswith("stall"):
            STALLED.set()
        elif line.startswith("wait"):
            time.sleep(float(line.split()[1]))
        else:
            request = json_format.Parse(line, pb.ConnectRequest())
            if not request.assessment.received_monotonic_ns:
                request.assessment.received_monotonic_ns = time.monotonic_ns()
            yield request


def main() -> None:
    """Connects, and talks until stdin ends."""
    with grpc.insecure_channel(sys.argv[1]) as channel:
        answers = rpc.SteeringServiceStub(channel).Connect(requests())
        try:
            for answer in answers:
                if STALLED.is_set():
                    threading.Event().wait()
                print(json.dumps(json_format.MessageToDict(answer, preserving_proto_field_name=True)))
                sys.stdout.flush()
        except grpc.RpcError as error:
            print(json.dumps({"error": str(error)}), flush=True)


if __name__ == "__main__":
    main()

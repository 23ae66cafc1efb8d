"""What waits to go down an agent's stream."""

from __future__ import annotations

import asyncio

from steerline.report.v1 import report_pb2
from steerline_appstation.shell.outbox import Outbox
from steerline_appstation.shell.replies import acknowledgement


async def test_a_stream_that_takes_nothing_loses_the_oldest() -> None:
    """The queue is bounded, putting never waits, and what is newest arrives."""
    outbox = Outbox(max_waiting=10)
    opened = asyncio.Event()
    sent: list[int] = []

    async def send(response: report_pb2.ReportResponse) -> None:
        await opened.wait()
        sent.append(response.acknowledgement.sequence_number)

    sender = asyncio.create_task(outbox.send_all(send))
    outbox.put(acknowledgement("s", 1))
    await asyncio.sleep(0)
    for number in range(2, 1000):
        outbox.put(acknowledgement("s", number))
    opened.set()
    outbox.close()
    await sender
    assert sent == [1, *range(990, 1000)]

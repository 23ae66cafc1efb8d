"""Fetches one URL from inside a namespace: `python -m steerline_testbed.experiment.fetch URL`."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request

TIMEOUT_S = 5.0


def main() -> None:
    """Prints the body. Exit status 1 when there is none."""
    # Only what the testbed itself serves is asked for; a proxy of the environment is not meant.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(sys.argv[1], timeout=TIMEOUT_S) as answer:
            sys.stdout.write(answer.read().decode())
    except (OSError, urllib.error.URLError) as error:
        print(error, file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()

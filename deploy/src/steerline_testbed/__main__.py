"""Command line."""


def main() -> None:
    """Placeholder until the component lands."""
    raise SystemExit(2)

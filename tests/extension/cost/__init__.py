"""What the extension and its host cost: `python -m tests.extension.cost --help`."""

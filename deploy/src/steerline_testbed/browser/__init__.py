"""Real browsers that watch, and the pages and servers that they watch from."""

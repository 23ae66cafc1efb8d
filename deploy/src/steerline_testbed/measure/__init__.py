"""Measurements of the controller on the emulated network: how fast, how lossless, how robust."""

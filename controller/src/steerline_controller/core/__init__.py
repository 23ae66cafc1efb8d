"""Decides without acting: events and `now` go in, effects come out. No I/O, no clock, no chance."""

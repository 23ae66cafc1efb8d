"""Sockets, clocks and tasks around the core."""

"""Chooses among leased lines on the Ryu API."""

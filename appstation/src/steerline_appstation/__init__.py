"""Receives playback reports and assesses sessions."""

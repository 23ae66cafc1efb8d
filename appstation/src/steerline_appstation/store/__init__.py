"""History: sessions, their time series, decisions, lines. Losing it never costs steering."""

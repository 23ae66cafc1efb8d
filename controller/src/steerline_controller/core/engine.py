"""The engine: one event in, effects out. See `events` and `effects`."""

"""Experiments on the emulated network: media, servers, traffic, figures, reports."""

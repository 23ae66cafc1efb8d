"""The words that several components share, and the one place where bytes become words."""

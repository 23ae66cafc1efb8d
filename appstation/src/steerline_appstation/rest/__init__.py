"""HTTP for operators: what the station sees now, and its history."""

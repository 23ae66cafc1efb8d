"""Reports and `now` go in, assessments come out. No socket, clock or logger here."""

"""Reports over the web, from extensions without a native host."""

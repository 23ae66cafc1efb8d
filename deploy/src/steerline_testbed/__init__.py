"""An access network on one machine, and a measuring instrument."""

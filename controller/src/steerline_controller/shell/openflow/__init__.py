"""OpenFlow 1.3: the pipeline as data, the fast way to and from bytes, and the adapter that hides os-ken."""

"""Acts: os-ken, gRPC, files, clocks."""

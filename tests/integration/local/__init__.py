"""The local cluster on real sockets, files and processes."""

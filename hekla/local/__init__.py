"""The local cluster, a stand-in for Kubernetes on one machine, and ``hekla up``."""

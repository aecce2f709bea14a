"""The controller's RPCs, a module a service. Each reads, calls one function, writes."""

"""Pure vocabulary: identities, resources, errors. No clock, no I/O, no randomness."""

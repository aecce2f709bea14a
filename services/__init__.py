"""The four services. Each imports the shared package and none of the others."""

"""The store on a real Postgres."""

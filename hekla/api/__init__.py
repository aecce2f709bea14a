"""The API kinds as pydantic models: one definition of every field, default and bound."""

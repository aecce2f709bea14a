"""The plugins: rules that take part in extension points of ``framework``. Pure."""

"""What is done about a flow: pure functions of what was observed and the time."""

"""Job plugins: what a job asks to have added to its pods. Pure, by one registry."""

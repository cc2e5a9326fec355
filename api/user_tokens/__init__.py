"""Short-lived tokens for one user, and that user's download."""

"""Export and import of a whole project as JSON lines."""

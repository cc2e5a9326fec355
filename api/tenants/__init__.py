"""Organizations, projects and members."""

"""Erasure: delete an owner, a project or an organization for good."""

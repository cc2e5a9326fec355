"""Webhooks: register, sign and deliver notifications."""

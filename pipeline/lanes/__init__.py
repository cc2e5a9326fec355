"""Lanes: the state machine that moves a scope's events through the stages."""

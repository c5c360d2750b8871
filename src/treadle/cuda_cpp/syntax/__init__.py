"""Tokens to trees."""

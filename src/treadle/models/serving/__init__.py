"""Serving models over HTTP, with the interface of OpenAI."""

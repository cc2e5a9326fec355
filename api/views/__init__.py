"""Responses: values of the product as the JSON that clients read."""

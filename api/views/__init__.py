"""Views: values of the product as the JSON of responses."""

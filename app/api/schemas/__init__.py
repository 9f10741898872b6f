"""The JSON schemas of answers, as OpenAPI describes them."""

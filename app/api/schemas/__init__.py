"""The JSON shapes of answers, as OpenAPI describes them."""

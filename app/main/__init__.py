"""The composition root: settings to objects to the application. Nothing else reads settings."""

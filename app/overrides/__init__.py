"""The operators' overrides: the table, how it is stored, and each process's replica of it."""

"""Decisions: a question, the file that answers it, and the steps from one to the other."""

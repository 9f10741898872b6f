"""Answers: a decision as bytes, with its tag, its lifetime and its sentence."""

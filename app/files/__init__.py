"""Files that operators write: bounded reads, reloads, and errors that say what to fix."""

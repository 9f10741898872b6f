"""What callers report of pages that are refused or priced: facts that all processes share, and that decide nothing."""

"""What operators decide over the heads of robots.txt files: the table, where it is kept, and each process's copy."""

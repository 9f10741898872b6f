"""What a robots.txt means: files are read, questions decided and mistakes found, without I/O and without a clock."""

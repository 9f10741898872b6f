"""The pure core: any bytes are a robots.txt. No I/O, no clock, no log, no settings; nothing here raises on input."""

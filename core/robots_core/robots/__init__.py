"""The pure core: parsing and matching. No I/O, no clock, no log, no settings; any bytes are a valid robots.txt."""

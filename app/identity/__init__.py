"""The crawler's identity (Web Bot Auth): keys, signatures of requests, and the directory of public keys.

The modules that handle keys need the extra `signatures`, so only what reads a key imports them.
"""

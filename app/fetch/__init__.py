"""One GET of one robots.txt, and nothing else: redirects hop by hop, the address guard, caps, one deadline."""

"""One shared service that tells a fleet of crawlers what each robots.txt on the web permits."""

__version__ = "0.2.0"

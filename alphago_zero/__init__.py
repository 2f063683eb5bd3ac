"""AlphaGo Zero for 9x9 Go, for the machine people have."""

__version__ = "0.1.0"

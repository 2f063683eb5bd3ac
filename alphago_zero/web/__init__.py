"""The page: play against a model, review games, watch a run learn. `server.py` has the map; docs/page.md the manual."""

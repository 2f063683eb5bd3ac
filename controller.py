"""`python controller.py COMMAND`: one stage of the loop, a match, the engine, the page. `--help` lists them."""

from alphago_zero.controller import main

if __name__ == "__main__":
    main()

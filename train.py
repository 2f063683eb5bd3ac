"""`python train.py`: learn Go from nothing, generation after generation."""

from alphago_zero.train import main

if __name__ == "__main__":
    main()

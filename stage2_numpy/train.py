"""Train this floor: `python -m stage2_numpy.train --help` is `groundup train stage2_numpy --help`.

The loop itself is `shared.training.loop.train`: it is the same on every floor, because training is not what differs.
"""

import sys

from groundup.cli import main

if __name__ == "__main__":
    main(["train", "stage2_numpy", *sys.argv[1:]])

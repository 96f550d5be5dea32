"""Train this floor: `python -m stage3_c.train --help` is `groundup train stage3_c --help`.

The loop itself is `shared.training.loop.train`: it is the same on every floor, because training is not what differs.
"""

import sys

from groundup.cli import main

if __name__ == "__main__":
    main(["train", "stage3_c", *sys.argv[1:]])

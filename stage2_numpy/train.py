"""Train this stage: `python -m stage2_numpy.train --help` is `groundup train stage2_numpy --help`.

The loop itself is `shared.training.loop.train`. It is the same on every stage: only the computations differ.
"""

import sys

from groundup.entry import main

if __name__ == "__main__":
    main(["train", "stage2_numpy", *sys.argv[1:]])

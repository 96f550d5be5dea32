"""Train this stage: `python -m stage3_c.train --help` is `groundup train stage3_c --help`.

The loop itself is `shared.training.loop.train`. It is the same on every stage: only the computations differ.
"""

import sys

from groundup.entry import main

if __name__ == "__main__":
    main(["train", "stage3_c", *sys.argv[1:]])

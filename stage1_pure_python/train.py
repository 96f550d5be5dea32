"""Train this stage: `python -m stage1_pure_python.train --help` is `groundup train stage1_pure_python --help`.

The loop itself is `shared.training.loop.train`. It is the same on every stage: only the computations differ.
"""

import sys

from groundup.entry import main

if __name__ == "__main__":
    main(["train", "stage1_pure_python", *sys.argv[1:]])

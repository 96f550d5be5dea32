"""Train this stage: `python -m stage4_numba_cuda.train --help` is `groundup train stage4_numba_cuda --help`.

The loop itself is `shared.training.loop.train`. It is the same on every stage: only the computations differ.
"""

import sys

from groundup.entry import main

if __name__ == "__main__":
    main(["train", "stage4_numba_cuda", *sys.argv[1:]])

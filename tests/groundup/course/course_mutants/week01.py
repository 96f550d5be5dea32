"""Wrong answers of week 1: the matrix product on lists."""

from tests.groundup.course.course_mutants import Mutant, RightAnswer

MUTANTS = [
    Mutant("1.1", "range(k_size)", "range(k_size - 1)", "values", "the last product is left out"),
    Mutant("1.1", "c[i][j] +=", "c[i][j] =", "values", "only the last product is kept"),
    Mutant("1.1", "[[0.0] * n for _ in range(m)]", "[[0.0] * n] * m", "values", "one and the same list"),
    Mutant(
        "1.1", "    return c", "        return c", "values", "only the first row is computed: does return stand inside"
    ),
    Mutant("1.2", "total += x", "total = x", "values", "only the last product is kept"),
    Mutant("1.2", "[[0.0] * n for _ in range(m)]", "[[0.0] * n] * m", "values", "one and the same list"),
    Mutant(
        "1.2",
        "        for j in range(n):\n            total = 0.0\n",
        "        total = 0.0\n        for j in range(n):\n",
        "values",
        "what stood before it in its row",
    ),
    Mutant("1.3", "list(zip(*b, strict=True))", "zip(*b, strict=True)", "values", "only the first row is computed"),
    Mutant("1.3", "zip(*b, strict=True)", "zip(*a, strict=True)", "shape", "ValueError"),
    Mutant("1.3", "total += x", "total = x", "values", "only the last product is kept"),
    Mutant("1.2", "[0.0] * n for", "[0.0] * len(b) for", "shape", "this is the shape of a"),
    Mutant("1.3", "[0.0] * n for", "[0.0] * len(b) for", "shape", "this is the shape of a"),
    Mutant("1.2", "    return c", "    return c + c[:1]", "shape", "this is the shape of b"),
    Mutant(
        "1.3",
        "    return c",
        "    columns = zip(*b, strict=True)\n"
        "    return [[sum(x * y for x, y in zip(a_row, column)) for column in columns] for a_row in a]",
        "shape",
        "the rows after the first find nothing there",
    ),
    Mutant(
        "1.2",
        "    return c",
        "    row, rows = [], []\n    for c_row in c:\n        row = row + c_row\n        rows.append(row)\n"
        "    return rows",
        "shape",
        "every row is longer than the one before",
    ),
    Mutant(
        "1.3",
        "    return c",
        "    import numpy as np\n    return np.asarray(c)",
        "shape",
        "this stage uses no NumPy: rows are lists",
    ),
    Mutant("1.3", "    return c", "    return [tuple(row) for row in c]", "shape", "rows are lists, [...]"),
    Mutant("1.4", "_transpose(a), _transpose(b)", "a, _transpose(b)", "shape", "the shape is not right"),
    Mutant("1.4", "_transpose(a), _transpose(b)", "_transpose(b), _transpose(a)", "values", "transposed"),
    Mutant("1.4", "_transpose(a), _transpose(b)", "_transpose(a[:-1]), _transpose(b[:-1])", "values", "the last row"),
    Mutant(  # calls another rung
        "1.1",
        "    c = [[0.0] * n for _ in range(m)]\n",
        "    return transpose_once(a, b)\n    c = [[0.0] * n for _ in range(m)]\n",
        "way",
        "this calls another function that has the product",
    ),
    Mutant(  # scales a in place
        "1.1",
        "                c[i][j] += a[i][k] * b[k][j]\n",
        "                a[i][k] *= b[k][j]\n"
        "                c[i][j] += a[i][k]\n"
        "                a[i][k] /= b[k][j] or 1.0\n",
        "shape",
        "make a new list, and leave a as it is",
    ),
    Mutant(  # abs
        "1.1",
        "c[i][j] += a[i][k] * b[k][j]",
        "c[i][j] += abs(a[i][k]) * b[k][j]",
        "values",
        "wrong",
    ),
    Mutant(  # indices
        "1.2",
        "        for j in range(n):\n"
        "            total = 0.0\n"
        "            for x, b_row in zip(a_row, b, strict=True):\n"
        "                total += x * b_row[j]\n",
        "        for j in range(n):\n"
        "            total = 0.0\n"
        "            for k in range(len(b)):\n"
        "                total += a_row[k] * b[k][j]\n",
        "way",
        "zip hands out a row's number together with its",
    ),
    Mutant(  # calls another rung
        "1.2",
        "    c = [[0.0] * n for _ in range(m)]\n",
        "    return index_loops(a, b)\n    c = [[0.0] * n for _ in range(m)]\n",
        "way",
        "this calls another function that has the product",
    ),
    Mutant(  # zip without strict short
        "1.2",
        "zip(a_row, b, strict=True)",
        "zip(a_row, b[1:])",
        "values",
        "wrong",
    ),
    Mutant(  # transposes in the loop
        "1.3",
        "    columns = list(zip(*b, strict=True))\n"
        "    c = [[0.0] * n for _ in range(m)]\n"
        "    for a_row, c_row in zip(a, c, strict=True):\n",
        "    c = [[0.0] * n for _ in range(m)]\n"
        "    for a_row, c_row in zip(a, c, strict=True):\n"
        "        columns = list(zip(*b, strict=True))\n",
        "way",
        "gather b's columns once, before the loop over the",
    ),
    Mutant(  # no transposition
        "1.3",
        "            for x, y in zip(a_row, column, strict=True):\n                total += x * y\n",
        "            for k in range(len(b)):\n                total += a_row[k] * b[k][j]\n",
        "way",
        "zip hands out a row's number together with its",
    ),
    Mutant(  # calls another rung
        "1.3",
        "    columns = list(zip(*b, strict=True))\n",
        "    return zip_rows_columns(a, b)\n    columns = list(zip(*b, strict=True))\n",
        "way",
        "this calls another function that has the product",
    ),
    Mutant(  # abT
        "1.4",
        "_rows_times_rows(_transpose(a), _transpose(b))",
        "_rows_times_rows(a, b)",
        "shape",
        "this is a times b transposed",
    ),
    Mutant(  # divided by rows
        "1.4",
        "    return _rows_times_rows(_transpose(a), _transpose(b))",
        "    return [[v / a_rows for v in row] for row in _rows_times_rows(_transpose(a), _transpose(b))]",
        "values",
        "everything is 3 times too small",
    ),
    Mutant(  # rows reversed
        "1.4",
        "_transpose(b))",
        "_transpose(b[::-1]))",
        "values",
        "wrong",
    ),
    Mutant(
        "1.1",
        "    for i in range(m):\n",
        "    import numpy as np\n\n    return (np.array(a) @ np.array(b)).tolist()\n    for i in range(m):\n",
        "way",
        "index_loops uses numpy",
    ),
    Mutant(
        "1.4",
        "    return _rows_times_rows(_transpose(a), _transpose(b))",
        "    from stage2_numpy.matmul import matmul_tn as product\n\n"
        "    return product(__import__('numpy').array(a), __import__('numpy').array(b)).tolist()",
        "way",
        "matmul_tn uses matmul_tn of stage2_numpy.matmul",
    ),
    Mutant(
        "1.1",
        "                c[i][j] += a[i][k] * b[k][j]",
        "                if a[i][k]:\n                    c[i][j] += a[i][k] * b[k][j]",
        "values",
        "products with 0 are left out",
    ),
    # Right once, or for friendly numbers: kept values, clamps, memory that is not the function's.
    Mutant(  # cache by id
        "1.1",
        "    c = [[0.0] * n for _ in range(m)]\n"
        "    for i in range(m):\n"
        "        for j in range(n):\n"
        "            for k in range(k_size):\n"
        "                c[i][j] += a[i][k] * b[k][j]\n",
        "    known = index_loops.__dict__.setdefault((id(a), id(b)), [])\n"
        "    if known:\n"
        "        return [row[:] for row in known]\n"
        "    c = [[0.0] * n for _ in range(m)]\n"
        "    for i in range(m):\n"
        "        for j in range(n):\n"
        "            for k in range(k_size):\n"
        "                c[i][j] += a[i][k] * b[k][j]\n"
        "    known.extend(row[:] for row in c)\n",
        "sizes",
        "NaN was computed, first at [0, 0]: inf - inf,",
    ),
    Mutant(  # clamp 500
        "1.1",
        "    return c",
        "    return [[max(-500.0, min(500.0, v)) for v in row] for row in c]",
        "values",
        "wrong at index",
    ),
    Mutant(  # skip nan product
        "1.1",
        "                c[i][j] += a[i][k] * b[k][j]\n",
        "                if b[k][j] == b[k][j]:\n                    c[i][j] += a[i][k] * b[k][j]\n",
        "sizes",
        "wrong at index",
    ),
    Mutant(  # modifies b
        "1.2",
        "    c = [[0.0]",
        "    b.reverse()\n    b.reverse()\n    b[0][0] += 0.0\n    b[0] = b[0][:]\n    b[0][0] += 1e-9\n    c = [[0.0]",
        "shape",
        "make a new list, and leave b as it is: the",
    ),
    Mutant(  # columns kept by shape
        "1.3",
        "    columns = list(zip(*b, strict=True))\n",
        "    columns = transpose_once.__dict__.setdefault((len(b), n), list(zip(*b, strict=True)))\n",
        "values",
        "wrong at index",
    ),
    Mutant(  # dict of columns (dups)
        "1.3",
        "    columns = list(zip(*b, strict=True))\n",
        "    columns = list(dict.fromkeys(zip(*b, strict=True)))\n",
        "values",
        "wrong at index",
    ),
    Mutant(  # columns by id of b
        "1.3",
        "    columns = list(zip(*b, strict=True))\n",
        "    columns = transpose_once.__dict__.setdefault(id(b), list(zip(*b, strict=True)))\n",
        "values",
        "IndexError",
    ),
    Mutant(  # aliased rows
        "1.4",
        "    return _rows_times_rows(_transpose(a), _transpose(b))",
        "    c = [[0.0] * b_columns] * a_columns\n"
        "    for x, y in zip(a, b):\n"
        "        for i in range(a_columns):\n"
        "            for j in range(b_columns):\n"
        "                c[i][j] += x[i] * y[j]\n"
        "    return c",
        "values",
        "all rows are one and the same list: [row] * m",
    ),
    Mutant(  # result kept
        "1.4",
        "    return _rows_times_rows(_transpose(a), _transpose(b))",
        "    c = matmul_tn.__dict__.setdefault('c', [])\n"
        "    c[:] = _rows_times_rows(_transpose(a), _transpose(b))\n"
        "    return c",
        "again",
        "each call makes its own result: one that is",
    ),
    Mutant(  # symmetric assumption
        "1.4",
        "    return _rows_times_rows(_transpose(a), _transpose(b))",
        "    c = _rows_times_rows(_transpose(a), _transpose(b))\n"
        "    if a_columns == b_columns:\n"
        "        c = [[c[min(i, j)][max(i, j)] for j in range(b_columns)] for i in "
        "range(a_columns)]\n"
        "    return c",
        "values",
        "wrong at index",
    ),
    Mutant("1.1", "b[k][j]", "(b[j][k] if len(b) == len(b[0]) > 2 else b[k][j])", "sizes", "b (5, 5)): wrong at index"),
]

RIGHT_ANSWERS = [
    RightAnswer("1.1", "c[i][j] += a[i][k] * b[k][j]", "c[i][j] = a[i][k] * b[k][j] + c[i][j]"),
    RightAnswer(  # order ikj
        "1.1",
        "        for j in range(n):\n            for k in range(k_size):\n",
        "        for k in range(k_size):\n            for j in range(n):\n",
    ),
    RightAnswer(  # fsum
        "1.1",
        "            for k in range(k_size):\n                c[i][j] += a[i][k] * b[k][j]\n",
        "            c[i][j] = math.fsum(a[i][k] * b[k][j] for k in range(k_size))\n",
    ),
    RightAnswer(
        "1.2",
        "            total = 0.0\n            for x, b_row in zip(a_row, b, strict=True):\n"
        "                total += x * b_row[j]\n            c_row[j] = total\n",
        "            c_row[j] = sum(x * b_row[j] for x, b_row in zip(a_row, b))\n",
    ),
    RightAnswer(  # rows of rows
        "1.2",
        "        for j in range(n):\n"
        "            total = 0.0\n"
        "            for x, b_row in zip(a_row, b, strict=True):\n"
        "                total += x * b_row[j]\n"
        "            c_row[j] = total\n",
        "        for x, b_row in zip(a_row, b):\n            c_row[:] = [y + x * z for y, z in zip(c_row, b_row)]\n",
    ),
    RightAnswer("1.3", "list(zip(*b, strict=True))", "[[row[j] for row in b] for j in range(n)]"),
    RightAnswer(
        "1.4",
        "    return _rows_times_rows(_transpose(a), _transpose(b))",
        "    c = [[0.0] * b_columns for _ in range(a_columns)]\n    for x, y in zip(a, b):\n"
        "        for i in range(a_columns):\n            for j in range(b_columns):\n"
        "                c[i][j] += x[i] * y[j]\n    return c",
    ),
    RightAnswer("1.4", "_rows_times_rows(_transpose(a), _transpose(b))", "matmul(_transpose(a), b)"),
]

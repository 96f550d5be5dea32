"""Wrong answers of week 8: ctypes and the micro-kernel."""

from tests.groundup.course.course_mutants import Mutant, RightAnswer

MUTANTS = [
    # 8.1 _prepare_nn
    Mutant("8.1", ", a=a, b=b)", ", a=a)", "memory", "out = b: this has to be refused"),
    Mutant("8.1", 'a, b = _as_pair("matmul", a, b)', "", "values", "_as_pair brings both into that form"),
    Mutant("8.1", "(m, n), a.dtype", "(n, m), a.dtype", "shape", "the rows of a and the columns of b"),
    # 8.2 Dense.forward
    Mutant("8.2", "self._x = x.view()", "", "gradient", "forward keeps x for backward"),
    Mutant(
        "8.2", "matmul(x, self.weights, out)", "out = matmul(x, self.weights)", "memory", "the result is not in out"
    ),
    Mutant(
        "8.2",
        'library.function("add_bias", out.dtype)(*out.shape, self.bias, out)',
        "out += self.bias",
        "memory",
        "is to be two calls into C",
    ),
    # 8.3 tile
    Mutant("8.3", "+= factor", "= factor", "values", "only the last product is kept"),
    Mutant(
        "8.3", "b_row + v * LANES", "b_row", "agreement", "the second register of a row holds the next LANES columns"
    ),
    Mutant("8.3", "i * a.row + p * a.column", "i * a.row + p", "agreement", "a is read by both its strides"),
    Mutant("8.1", "k != b.shape[0]", "k < b.shape[0]", "memory", "this has to be refused, and was not"),
    Mutant("8.1", "(m, k, n)", "(m, n, k)", "shape", "the sizes are not (M, K, N)"),
    Mutant("8.1", "(m, n), a.dtype", '(m, n), "float64"', "values", "another dtype"),
    Mutant(
        "8.1",
        'a, b = _as_pair("matmul", a, b)',
        'a, b = _as_pair("matmul", a, b)\n    a, b = a.copy(), b.copy()',
        "values",
        "no further copy is needed",
    ),
    Mutant(
        "8.1", 'output_like("matmul", out,', 'output_like("matmul", None,', "agreement", "hand it on to output_like"
    ),
    Mutant("8.2", "self._x = x.view()", "self._x = out", "gradient", "forward keeps x for backward"),
    Mutant("8.2", "(*out.shape, self.bias, out)", "(1, out.shape[1], self.bias, out)", "values", "wrong at index"),
    Mutant(
        "8.2",
        "        matmul(x, self.weights, out)\n",
        "        matmul(x, self.weights, out)\n        matmul(x, self.weights, out)\n",
        "memory",
        "is to be two calls into C",
    ),
    Mutant("8.2", "out.dtype)", '"float64")', "memory", "Dense.forward in float32"),
    Mutant("8.3", "factor * row[v]", "factor * row[0]", "agreement", "the second register of a row"),
    Mutant("8.3", "i * a.row + p * a.column", "p * a.row + i * a.column", "shape", "an index goes past the end"),
    Mutant("8.3", "size_t p = 0; p < depth", "size_t p = 1; p < depth", "values", "wrong at index"),
    # 8.4 network_step
    Mutant("8.4", "if (backward(&way, count, operations) != 0) return -1;", "", "shape", "read before it is written"),
    Mutant("8.4", "if (forward(&way, count, operations) != 0) return -1;", "", "shape", "read before it is written"),
    Mutant("8.4", "*loss = NAME", "NAME", "compile", "never looks at the argument loss"),
    Mutant("8.4", "y, last->grad_output);", "y, last->output);", "shape", "read before it is written"),
    Mutant("8.4", " && optimizer != NULL", "", "shape", ""),
    Mutant("8.4", "it->grad_w == NULL", "it->grad_w != NULL", "values", "the weights have not moved"),
    Mutant("8.4", "it->b_size, it->b,", "0, it->b,", "values", "the biases have not moved"),
    Mutant("8.4", "it->w_first, it->w_second", "NULL, NULL", "shape", "outside an array"),
    Mutant("8.4", "i < count &&", "i + 1 < count &&", "values", ""),
    Mutant("8.4", "operations) != 0) return -1;", "operations) != 0) return 0;", "sizes", "found no memory"),
    Mutant("8.4", "it->b_second) != 0) return -1;", "it->b_second) != 0) break;", "sizes", "found no memory"),
    # Right once, or for friendly numbers: kept values, clamps, memory that is not the function's.
    Mutant(  # overlap by identity
        "8.1",
        '    return a, b, output_like("matmul", out, (m, n), a.dtype, a=a, b=b), (m, k, n)',
        "    if out is a or out is b:\n"
        '        raise ValueError("overlap")\n'
        '    return a, b, output_like("matmul", out, (m, n), a.dtype), (m, k, n)',
        "memory",
        "out is written while a and b are still read:",
    ),
    Mutant(  # out kept
        "8.1",
        'output_like("matmul", out, (m, n), a.dtype, a=a, b=b)',
        "(out if out is not None else _prepare_nn.__dict__.setdefault((m, n, a.dtype), "
        'output_like("matmul", None, (m, n), a.dtype, a=a, b=b))) if out is None else '
        'output_like("matmul", out, (m, n), a.dtype, a=a, b=b)',
        "agreement",
        "each call makes its own result: one that is",
    ),
    Mutant(  # first x
        "8.2",
        "        self._x = x.view()",
        "        self._x = x.view() if self._x is None else self._x",
        "again",
        "alone, the same call is right: so an earlier",
    ),
    Mutant(  # weights copy kept
        "8.2",
        "matmul(x, self.weights, out)",
        'matmul(x, self.__dict__.setdefault("_w", self.weights.copy()), out)',
        "again",
        "alone, the same call is right: so an earlier",
    ),
    Mutant(  # bias object kept
        "8.2",
        "self.bias, out)",
        'self.__dict__.setdefault("_b", self.bias), out)',
        "again",
        "alone, the same call is right: so an earlier",
    ),
    Mutant(  # static sum
        "8.3",
        "vector sum[TILE_ROWS][TILE_VECTORS];",
        "static vector sum[TILE_ROWS][TILE_VECTORS];",
        "shape",
        "static and global variables are shared by all",
    ),
    Mutant(  # reads next row
        "8.3",
        "vector row[TILE_VECTORS];",
        "vector row[TILE_VECTORS];\n"
        "        volatile real next = b[(p + 1) * b_row + vectors * LANES];\n"
        "        (void)next;",
        "agreement",
        "memory that may not be read",
    ),
    Mutant(  # static batch
        "8.4",
        "    if (forward(&way",
        "    static size_t seen;\n    if (seen < batch) seen = batch;\n    if (forward(&way",
        "way",
        "a static variable is one for all calls, and",
    ),
    Mutant(  # loss of seen
        "8.4",
        "*loss = NAME(loss_by_number)((enum loss)loss_kind, batch,",
        "static size_t seen;\n"
        "    if (seen == 0) seen = batch;\n"
        "    *loss = NAME(loss_by_number)((enum loss)loss_kind, seen < batch ? seen : batch,",
        "agreement",
        "something is read before it is written:",
    ),
    Mutant("8.4", "return 1 + (int64_t)bad;", "return (int64_t)bad;", "sizes", "the label of row 0 is no class"),
]

RIGHT_ANSWERS = [
    RightAnswer(
        "8.1",
        "raise ValueError(f\"matmul: a is {a.shape} but b is {b.shape}; a's columns must equal b's rows\")",
        'raise ValueError("these two do not fit")',
    ),
    RightAnswer(  # x itself
        "8.2",
        "        self._x = x.view()",
        "        self._x = x",
    ),
    RightAnswer(
        "8.4",
        "    if (backward(&way, count, operations) != 0) return -1;\n",
        "    for (size_t i = count; i-- > 0;) {\n"
        "        if (backward_one(&way, &operations[i]) != 0) return -1;\n    }\n",
    ),
    RightAnswer("8.4", "    pool_note(threads);\n", ""),
]

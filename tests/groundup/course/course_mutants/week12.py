"""Wrong answers of week 12: activation kernels."""

from tests.groundup.course.course_mutants import Mutant, RightAnswer

FORWARD = """        i = cuda.grid(1)
        step = cuda.gridsize(1)
        while i < z.size:
            output[i] = function(z[i])
            i += step
"""

CHUNK = """        run = (z.size + cuda.gridsize(1) - 1) // cuda.gridsize(1)
        i = cuda.grid(1) * run
        end = min(i + run, z.size)
        while i < end:
            output[i] = function(z[i])
            i += 1
"""

CALL = "function(grad_output[i], output[i])"

ERROR = "positive_part - z * target + math.log1p(math.exp(-abs(z)))"

MUTANTS = [
    Mutant("12.1", "while i < z.size", "if i < z.size", "values", "no grid-stride loop"),
    Mutant("12.1", "return named(name, kernel)", "return cuda.jit(kernel)", "shape", "return named(name, kernel)"),
    Mutant("12.1", FORWARD, CHUNK, "memory", "a run of neighbouring elements"),
    Mutant("12.2", CALL, "function(output[i], grad_output[i])", "values", "gradient and output exchanged"),
    Mutant(
        "12.2", CALL, "function(type(output[i])(1), output[i])", "values", "the gradient that comes back is forgotten"
    ),
    Mutant(
        "12.2",
        CALL,
        "function(type(output[i])(1), output[i]) * grad_output[i]",
        "values",
        "infinity times 0 is NaN",
    ),
    Mutant("12.2", "while i < output.size", "while True", "shape", "no guard"),
    Mutant("12.3", ERROR, "math.log1p(math.exp(z)) - z * target", "values", "exp overflows"),
    Mutant("12.3", "math.log1p(", "math.log(type(z)(1) + ", "values", "without that loss"),
    Mutant("12.3", "- z * target", "+ z * target", "values", "subtracted, not added"),
    Mutant("12.1", "function(z[i])", "function(z[i] * 1.0)", "types", "computes in float64"),
    Mutant("12.1", "cuda.gridsize(1)", "cuda.blockDim.x", "memory", "several threads compute the same number"),
    Mutant(
        "12.1",
        "output[i] = function(z[i])",
        "z[i] = function(z[i])\n            output[i] = z[i]",
        "shape",
        "was changed by the kernel",
    ),
    Mutant("12.1", "named(name, kernel)", "named(name + '_forward', kernel)", "shape", "return named(name, kernel)"),
    Mutant(
        "12.2",
        "function(grad_output[i], output[i])",
        "function(grad_output[i] * 1.0, output[i])",
        "types",
        "computes in float64",
    ),
    Mutant("12.2", "cuda.gridsize(1)", "cuda.blockDim.x", "memory", "several threads compute the same number"),
    Mutant("12.2", "grad_z[i] =", "grad_z[i] +=", "shape", "holds nothing yet"),
    Mutant(
        "12.3", "math.log1p(math.exp(-abs(z)))", "math.log1p(1.0 * math.exp(-abs(z)))", "types", "computes in float64"
    ),
    Mutant("12.3", "type(z)(0) if z <= type(z)(0) else z", "max(z, 0.0)", "types", "computes in float64"),
    Mutant("12.3", "type(z)(0) if z <= type(z)(0) else z", "max(z, 0)", "types", "computes in float64"),
    Mutant("12.3", "- z * target", "- (z if target > 0 else z * type(z)(0))", "agreement", ""),
    Mutant(
        "12.3", "    positive_part", "    z = min(max(z, type(z)(-80)), type(z)(80))\n    positive_part", "values", ""
    ),
    Mutant("12.1", "named(name, kernel)", "named(kernel, name)", "import", "the name comes first"),
    Mutant("12.1", "    def kernel(", "    @cuda.jit\n    def kernel(", "import", "Leave out the decorator"),
    Mutant("12.2", "named(name, kernel)", "named(kernel, name)", "import", "the name comes first"),
    Mutant("12.2", "    def kernel(", "    @cuda.jit\n    def kernel(", "import", "Leave out the decorator"),
    Mutant(
        "12.1",
        "output[i] = function(z[i])",
        "output[i] = function(min(max(z[i], z.dtype.type(-500)), z.dtype.type(500)))",
        "memory",
        "all numbers lie far out here",
    ),
    Mutant(
        "12.1",
        "output[i] = function(z[i])",
        "v = z[i]\n            output[i] = function(v) if v == v else z.dtype.type(0)",
        "memory",
        "NaN and inf say that something went wrong before",
    ),
    Mutant(
        "12.2",
        "            grad_z[i] = function",
        "            grad_z[i] = output.dtype.type(0)\n            grad_z[i] = function",
        "memory",
        "with an array of its own it was right",
    ),
    Mutant(
        "12.2",
        "function(grad_output[i], output[i])",
        "function(grad_output[i], output[i]) if grad_output[i] != 0 else output.dtype.type(0)",
        "values",
        "sigmoid_backward[1, 2] of 2 numbers: wrong",
    ),
]

RIGHT_ANSWERS = [
    RightAnswer("12.3", "positive_part", "hinge"),
]

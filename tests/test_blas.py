"""No result goes through BLAS, whose bits depend on how many threads it has."""

import ast
import re
from pathlib import Path

import pytest

import hedgerow

SOURCES = Path(hedgerow.__file__).parent
# NumPy's and scipy's names for what calls BLAS or LAPACK; `einsum` does not, unless it optimises.
NAMES = {"dot", "inner", "linalg", "matmul", "optimize", "tensordot", "vdot"}
# Sources without any of these need not be parsed.
SUSPECT = re.compile(rf"@\W|{'|'.join(NAMES)}")
# What is known to be too short to be shared out: shares of at most 50 planes; a row for each method
# and training set that are compared.
SHORT = {
    ("descent/bundle.py", "np.linalg.solve"),
    *(("stats/logistic.py", f"np.linalg.{name}") for name in ("eigh", "inv", "solve")),
}
# Linear programs, which scipy has solved without BLAS.
PROGRAMS = {("stats/logistic.py", "from scipy.optimize import linprog")}
# Sparse matrices, which scipy multiplies by itself.
SPARSE = {
    ("stats/tallies.py", "self._transposed @ weights"),
}


def attributes(function):
    """Names with a point before or behind them, from the last: of `np.linalg.inv` all three."""
    while isinstance(function, ast.Attribute):
        yield function.attr
        function = function.value
        if isinstance(function, ast.Name):
            yield function.id


def calls_of_blas(source):
    """All products of matrices and calls that lead to BLAS, as they stand in the text."""
    for node in ast.walk(ast.parse(source if SUSPECT.search(source) else "")):
        if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            yield ast.unparse(node)
        elif isinstance(node, ast.Call) and (
            any(keyword.arg == "optimize" for keyword in node.keywords)
            or not NAMES.isdisjoint(attributes(node.func))
        ):
            yield ast.unparse(node.func)
        elif isinstance(node, ast.ImportFrom) and node.module in ("scipy.linalg", "scipy.optimize"):
            yield ast.unparse(node)


def test_no_result_goes_through_blas():
    found = {
        (path.relative_to(SOURCES).as_posix(), call)
        for path in SOURCES.rglob("*.py")
        for call in calls_of_blas(path.read_text(encoding="utf-8"))
    }
    assert found == SHORT | SPARSE | PROGRAMS


@pytest.mark.parametrize(
    "source",
    [
        *("a @ b", "a @= b", "np.dot(a, b)", "a.dot(b)", "np.linalg.norm(a)"),
        *("np.einsum('i,i', a, b, optimize=True)", "from scipy.optimize import minimize"),
    ],
)
def test_calls_of_blas_are_found(source):
    assert len(list(calls_of_blas(source))) == 1


@pytest.mark.parametrize("source", ["dot(a, b)", "np.einsum('i,i', a, b)", "a * b"])
def test_sums_in_a_fixed_order_may_stay(source):
    assert list(calls_of_blas(source)) == []

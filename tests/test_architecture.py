"""The layers of the library: every import goes to a lower layer, even lazy ones and for types."""

import ast
import re
import traceback
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import hedgerow
from hedgerow import TreeCRF, _core

ROOT = Path(hedgerow.__file__).parent
# Modules and packages from the bottom up. Those of one row do not know each other.
LAYERS = """
    comm counting graph label_colours notebook shared_parameters
  / atomic_write data_warning datasets exact_sums fingerprint history lazy line_search parameters
    progress raw_data sequences state suggestions tables threads version
  / ancestors description encode identity lbfgs lock named_parameters pivot seen_groups
  / labels metrics relational trees
  / files
  / base_scores base_sequences linear preprocessing scorers trellis weighting
  / decoding explain inspection model_selection stats
  / objectives persist potentials
  / checkpoint model
  / fitted model_json training
  / boosting descent shown
  / cuda
  / predictor
  / estimator
  / base_choice
  / linear_crf tree_crf
  / dask loading plots report
  / hedgerow
  / cli
  / __main__
"""
# Who may use the compiled module.
USERS_OF_CORE = """
    boosting cuda decoding descent encode estimator fingerprint identity labels lbfgs linear model
    objectives persist potentials predictor report sequences training trees trellis
"""
UNITS = {name: number for number, row in enumerate(LAYERS.split("/")) for name in row.split()}


def module_name(path: Path) -> str:
    """As it is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(("hedgerow", *parts)).removesuffix(".__init__")


PATHS = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


@cache
def read_nodes() -> dict[str, list[ast.AST]]:
    """All nodes of the syntax trees of modules that a test asks about, by module."""
    asked = (ast.Attribute, ast.ClassDef, ast.FunctionDef, ast.Import, ast.ImportFrom, ast.Name)
    return {
        name: [node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, asked)]
        for name, path in PATHS.items()
    }


def unit(module: str) -> str:
    """The module or package of the top level that a module belongs to."""
    return module.split(".")[1] if "." in module else module


@cache
def imports(module: str) -> list[str]:
    """All modules of the library that a module imports, wherever it does so."""
    return list(find_imports(read_nodes()[module]))


def find_imports(nodes: list[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if unit(alias.name) in UNITS)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hedgerow"):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in PATHS or alias.name == "_core" else str(node.module)


def test_every_module_has_a_layer():
    assert {unit(module) for module in PATHS} == set(UNITS)


def may_import(module: str, imported: str) -> bool:
    if unit(imported) == "_core":
        return unit(module) in USERS_OF_CORE.split()
    return unit(imported) == unit(module) or UNITS[unit(imported)] < UNITS[unit(module)]


def test_imports_go_down():
    assert not [
        f"{module} imports {imported}"
        for module in PATHS
        for imported in imports(module)
        if not may_import(module, imported)
    ]


def test_no_module_imports_itself_by_way_of_others():
    known = {name: set(imports(name)) & set(PATHS) - {name} for name in PATHS}
    TopologicalSorter(known).prepare()  # raises CycleError


def test_nobody_uses_underscore_names_of_another_unit():
    read = read_nodes()
    defined: dict[str, set[str]] = {}
    for module, nodes in read.items():
        names = defined.setdefault(unit(module), set())
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                names.add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
    of_somebody = set().union(*defined.values())
    private = [
        f"{module}:{node.lineno} {node.attr}"
        for module, nodes in read.items()
        for node in nodes
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.endswith("__")
        and node.attr in of_somebody - defined[unit(module)]
        and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
    ]
    private += [
        f"{module}:{node.lineno} {alias.name}"
        for module, nodes in read.items()
        for node in nodes
        if isinstance(node, ast.ImportFrom) and unit(node.module or "") != unit(module)
        for alias in node.names
        if alias.name.startswith("_") and not alias.name.endswith("__") and alias.name != "_core"
    ]
    assert private == []


def test_a_round_of_boosting_goes_through_the_files_that_contributing_names(monkeypatch):
    """From `TreeCRF.fit` to the kernels of trees and of forward-backward."""
    ways: dict[str, list[str]] = {}
    for kernel in ("grow_trees", "fill_posteriors"):
        monkeypatch.setattr(_core, kernel, follow(getattr(_core, kernel), ways))
    TreeCRF(n_rounds=2, n_jobs=1).fit(
        [[[0.0], [1.0], [0.0]], [[1.0], [0.0]]], [list("aba"), list("ba")]
    )
    text = (ROOT.parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paragraph = re.search(r"One round of `TreeCRF.fit`.*?\n\n", text, re.DOTALL)
    assert paragraph is not None
    to_trees, to_posteriors, _ = (
        re.findall(r"`([a-z_/]+\.py)`", part) for part in re.split(r"\. And|which", paragraph[0])
    )
    to_booster = to_trees[: to_trees.index("boosting/booster.py")]
    assert ways == {"grow_trees": to_trees, "fill_posteriors": to_booster + to_posteriors}
    assert max(map(len, ways.values())) <= 7


def follow(kernel, ways):
    """Note which files a kernel was last called through in a round, from that of `fit` on."""

    def called(*args):
        files = [
            Path(frame.filename).relative_to(ROOT).as_posix()
            for frame in traceback.extract_stack()
            if Path(frame.filename).is_relative_to(ROOT)
        ]
        if "boosting/booster.py" in files:
            ways[kernel.__name__] = list(dict.fromkeys(files[files.index("estimator.py") :]))
        return kernel(*args)

    return called

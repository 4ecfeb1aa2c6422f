"""Formulas as MathML, which browsers draw themselves: the site needs no script and no network."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


def _draw(node: nodes.Element, *, as_block: bool) -> str:
    text = node.astext()
    try:
        return tex2mathml(text, as_block=as_block)
    except MathError as error:
        logger.warning("cannot draw the formula %r: %s", text, error, location=node)
        return ""


def _visit_inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(_draw(node, as_block=False))
    raise nodes.SkipNode


def _visit_block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="formula">{_draw(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Tell Sphinx of it."""
    app.add_html_math_renderer("mathml", (_visit_inline, None), (_visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

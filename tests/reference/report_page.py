"""Reads a report page as its scripts do: slow and simple."""

import base64
import json
import re
import zlib
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np


class _Scripts(HTMLParser):
    """Texts of all elements of a page, as a browser parses them: (tag, attributes, text)."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs), []))

    def handle_data(self, data):
        if self.found:
            self.found[-1][2].append(data)


class Page:
    """The contents of a page.

    Attributes
    ----------
    html : str
        The whole file.
    elements : list of (tag, attributes, text)
    data : dict
        Its JSON.
    """

    def __init__(self, path):
        self.html = path.read_text(encoding="utf-8")
        parser = _Scripts()
        parser.feed(self.html)
        self.elements = [(tag, attrs, "".join(text)) for tag, attrs, text in parser.found]
        by_id = {attrs["id"]: text for tag, attrs, text in self.elements if "id" in attrs}
        self.data = json.loads(by_id["data"])
        self._blobs = {
            name[5:]: zlib.decompress(base64.b64decode(text))
            for name, text in by_id.items()
            if name.startswith("blob-")
        }

    def array(self, place):
        data = self._blobs[place["blob"]]
        return np.frombuffer(data, "<" + place["dtype"], place["length"], place["start"])

    def value(self, place):
        return json.loads(self.array(place).tobytes())

    def browser(self, name):
        return self.array(self.data["browser"][name])

    def browser_part(self, part, array, value):
        """An array and a JSON value of a part of the browser."""
        places = self.data["browser"][part]
        return self.array(places[array]), self.value(places[value])

    def offsets(self):
        return np.concatenate([[0], np.cumsum(self.browser("lengths").astype(int))])

    def features(self):
        """For each position, a dict of its columns, and a list of other attributes."""
        place, offsets = self.data["browser"]["features"], self.offsets()
        texts = self.value(place["texts"])
        columns = place["columns"]
        found = [({}, []) for _ in range(offsets[-1])]
        for column in columns:
            for begin, end in pairwise(offsets.tolist()):
                for t in range(begin, end):
                    value = self._at(column, columns, texts, t, begin, end)
                    if value is not None:
                        found[t][0][column["name"]] = value
        if place["loose"]:
            loose = place["loose"]
            names, codes = self.value(loose["names"]), self.array(loose["codes"])
            values = self.array(loose["values"]).tolist() if "values" in loose else [1] * len(codes)
            ends = np.cumsum(self.array(loose["counts"]).astype(int))
            for t, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
                found[t][1].extend((names[codes[i]], values[i]) for i in range(begin, end))
        return found

    def _at(self, column, columns, texts, t, begin, end):
        if "values" in column:
            value = self.array(column["values"])[t].item()
            return None if np.isnan(value) else value
        codes = self.array(column["codes"])
        if "sources" not in column:
            return texts[codes[t]] if codes[t] else None
        own = np.cumsum(self.array(column["steps"]).astype(int)).tolist()
        if t in own:
            code = codes[own.index(t)]
            return texts[code] if code else None
        parts = []
        for source, shift in column["sources"]:
            at = t + shift
            code = self.array(columns[source]["codes"])[at] if begin <= at < end else 0
            parts.append(texts[code] if code else None)
        return None if None in parts else column["joint"].join(parts)


def network_addresses(html):
    """Network addresses in a page, except for those of XML namespaces."""
    return set(re.findall(r"https?://[^\s\"'<>]+", html)) - {"http://www.w3.org/2000/svg"}

"""Makes matplotlib's SVG small.

What draws nothing goes, a style or marker is written once, and coordinates have a tenth of a point.
"""

import re
from collections.abc import Iterator
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import numpy as np

from cylbo.types import Array

__all__ = ["compact"]

SVG, LINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
HREF = f"{{{LINK}}}href"
# Points; a line moves by less than a hair
TOLERANCE = 0.6
NUMBER = re.compile(r"-?\d+\.\d{2,}")
REFERENCE = re.compile(r"#(\w+)")
PLACES = ("x", "y", "width", "height", "transform")
GROUP, TEXT, PATH, DEFS, STYLE, METADATA = (
    f"{{{SVG}}}{name}" for name in ("g", "text", "path", "defs", "style", "metadata")
)


def compact(svg: str) -> str:
    """The same picture in fewer bytes."""
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", LINK)
    # The text is matplotlib's own, of a moment ago
    root = ElementTree.fromstring(svg)  # noqa: S314
    _without_idle_groups(root)
    _with_shared_markers(root)
    _with_short_names(root)
    for element in root.iter():
        for name in PLACES:
            if name in element.attrib:
                element.set(name, NUMBER.sub(_shorter, element.attrib[name]))
        if element.tag == PATH:
            commands = element.attrib["d"]
            element.set("d", _path(commands))
            if commands.count("L") == 1:
                # A line of the grid lies within its panel
                element.attrib.pop("clip-path", None)
        if element.attrib.get("transform", "").startswith("rotate(-0"):
            del element.attrib["transform"]
        if element.tag != TEXT and not (element.text or "").strip():
            element.text = None
        if not (element.tail or "").strip():
            element.tail = "\n"
    _with_shared_styles(root)
    return ElementTree.tostring(root, encoding="unicode").replace(" />", "/>")


def _without_idle_groups(root: Element) -> None:
    """Put the children of groups that only have an identifier in the place of these, and drop the metadata."""

    def drawn(parent: Element) -> Iterator[Element]:
        for child in list(parent):
            children = list(drawn(child))
            if child.tag == METADATA:
                continue
            if child.tag == GROUP and not set(child.attrib) - {"id"}:
                yield from children
            else:
                child[:] = children
                yield child

    root[:] = list(drawn(root))


def _with_shared_markers(root: Element) -> None:
    """Define a marker once that is the same in several panels."""
    first: dict[tuple[str | None, str | None], str] = {}
    same: dict[str, str] = {}
    for parent in list(root.iter()):
        for definitions in [child for child in parent if child.tag == DEFS]:
            for path in [child for child in definitions if child.tag == PATH and "id" in child.attrib]:
                kept = first.setdefault((path.get("d"), path.get("style")), path.attrib["id"])
                if kept != path.attrib["id"]:
                    same[path.attrib["id"]] = kept
                    definitions.remove(path)
            if len(definitions) == 0:
                parent.remove(definitions)
    for element in root.iter():
        if (name := element.get(HREF, "").removeprefix("#")) in same:
            element.set(HREF, f"#{same[name]}")


def _with_short_names(root: Element) -> None:
    """Keep the identifiers that something refers to, as single letters and numbers."""
    texts = [text for element in root.iter() for text in (element.get(HREF, ""), element.get("clip-path", ""))]
    used = list(dict.fromkeys(name for text in texts for name in REFERENCE.findall(text)))
    short = {name: f"i{k}" for k, name in enumerate(used)}
    for element in root.iter():
        if (name := element.attrib.pop("id", None)) in short:
            element.set("id", short[name])
        for attribute in (HREF, "clip-path"):
            if attribute in element.attrib:
                element.set(attribute, REFERENCE.sub(lambda m: f"#{short[m[1]]}", element.attrib[attribute]))


def _with_shared_styles(root: Element) -> None:
    """Name every style once, as a class; one that all members of a group share stands at the group."""
    styles = list(dict.fromkeys(style for element in root.iter() if (style := element.get("style"))))
    names = {style: f"s{k}" for k, style in enumerate(styles)}
    for element in root.iter():
        if (style := element.attrib.pop("style", None)) is not None:
            element.set("class", names[style])
    for group in root.iter(GROUP):
        classes = {child.get("class") for child in group}
        if len(classes) == 1 and None not in classes and "class" not in group.attrib:
            group.set("class", str(classes.pop()))
            for child in group:
                del child.attrib["class"]
    sheet = next(root.iter(STYLE))
    sheet.text = (sheet.text or "") + "".join(f"\n.{name}{{{style}}}" for style, name in names.items()) + "\n"


def _path(commands: str) -> str:
    """A path in steps of a tenth, with fewer corners if it is one line or one polygon."""
    words = commands.split()
    end = words[-1:] if words[-1:] == ["z"] else []
    steps = words[: len(words) - len(end)]
    if steps[0::3] != ["M", *"L" * (len(steps) // 3 - 1)]:
        return re.sub(r" ?([A-Za-z]) ?", r"\1", " ".join(NUMBER.sub(_shorter, word) for word in words))
    corners = np.array([steps[1::3], steps[2::3]], dtype=float).T
    tenths = np.rint(10.0 * corners[_kept(corners)]).astype(int)
    moves = np.diff(tenths, axis=0, prepend=0)
    pairs = ["".join(f" {_tenths(n)}" for n in move).replace(" -", "-").lstrip() for move in moves.tolist()]
    lines = "".join(pair if pair[0] == "-" else f" {pair}" for pair in pairs[1:])
    return f"M{pairs[0]}" + (f"l{lines.lstrip()}" if lines else "") + "".join(end)


def _kept(corners: Array) -> list[int]:
    """The indices of the corners (n, 2) that a line needs to stay within the tolerance (Douglas and Peucker 1973)."""
    kept, parts = {0, len(corners) - 1}, [(0, len(corners) - 1)]
    while parts:
        first, last = parts.pop()
        if last - first < 2:
            continue
        along = corners[last] - corners[first]
        length = float(np.hypot(*along))
        inside = corners[first + 1 : last] - corners[first]
        if length > 0.0:
            distance = np.abs(inside[:, 0] * along[1] - inside[:, 1] * along[0]) / length
        else:
            distance = np.hypot(inside[:, 0], inside[:, 1])
        furthest = int(np.argmax(distance))
        if distance[furthest] > TOLERANCE:
            middle = first + 1 + furthest
            kept.add(middle)
            parts += [(first, middle), (middle, last)]
    return sorted(kept)


def _tenths(n: int) -> str:
    """N / 10 as text."""
    whole, rest = divmod(abs(n), 10)
    text = f"{whole or ''}.{rest}" if rest else str(whole)
    return f"-{text}" if n < 0 else text


def _shorter(found: re.Match[str]) -> str:
    text = f"{float(found[0]):.1f}".removesuffix(".0")
    return "0" if text == "-0" else text

"""A page as a list of elements, for tests that look at what a browser would make of it."""

from __future__ import annotations

from dataclasses import dataclass
from html.parser import HTMLParser

EMPTY = {"meta", "link", "img", "input"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None]
    parents: list[str]
    page: Page
    start: int
    end: int

    @property
    def text(self) -> str:
        return "".join(self.page.texts[self.start : self.end])


class Page(HTMLParser):
    """Fails on an element that is closed in the wrong place, and on an attribute that is there twice."""

    def __init__(self, source: str):
        super().__init__(convert_charrefs=True)
        self.source = source
        self.elements: list[Element] = []
        self.texts: list[str] = []
        self.open: list[Element] = []
        self.feed(source)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert len(dict(attributes)) == len(attributes), tag
        here = len(self.texts)
        element = Element(tag, dict(attributes), [one.tag for one in self.open], self, here, here)
        self.elements.append(element)
        if tag not in EMPTY:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        element = self.open.pop()
        assert element.tag == tag
        element.end = len(self.texts)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def all(self, tag: str, **wanted: str) -> list[Element]:
        names = {name.rstrip("_").replace("_", "-"): value for name, value in wanted.items()}
        found = (one for one in self.elements if one.tag == tag)
        return [one for one in found if all(one.attributes.get(name) == value for name, value in names.items())]

    def one(self, tag: str, **wanted: str) -> Element:
        (found,) = self.all(tag, **wanted)
        return found

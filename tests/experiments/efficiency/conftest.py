"""As in tests/search: the checks of indexes are noted in a cache folder of the tests."""

from tests.search.conftest import cache

__all__ = ["cache"]

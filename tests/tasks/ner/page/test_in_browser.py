"""Pages as a browser shows them."""

import pytest

from tests.helpers.browser import chromium, open_page
from tests.tasks.ner.page.test_page import page, record

pytestmark = [pytest.mark.slow, pytest.mark.skipif(chromium() is None, reason="no browser: apt-get install chromium")]
LABEL = "getComputedStyle(document.querySelectorAll('mark')[{}], '::after').content"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_page(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture
def show(browser, tmp_path):
    def show(*records, **options):
        path = tmp_path / "page.html"
        path.write_text(page(*records, **options), encoding="utf-8")
        browser.open(path.as_uri())
        return browser

    yield show
    assert browser.errors == []


def shown(browser):
    """Types of the marks that are drawn."""
    return browser.run(
        "[...document.querySelectorAll('mark')].filter(mark => getComputedStyle(mark).borderTopWidth != '0px')"
        ".map(mark => mark.dataset.type)"
    )


def test_chosen_types_are_shown_alone_and_the_button_shows_all(show):
    browser = show(record("北京大学和校长", (0, 2, "a", 1.0), (0, 4, "b", 1.0), (5, 7, "c", 1.0)))
    laid_out = "document.querySelectorAll('main p')[0].innerText == '北京大学和校长'"  # not before the first frame
    browser.wait_for(laid_out)
    text = browser.text()
    assert shown(browser) == ["b", "a", "c"]
    browser.run("document.getElementById('only1').click()")
    assert shown(browser) == ["b"] and browser.run(LABEL.format(1)) == "none"
    browser.wait_for(laid_out)
    assert browser.run("[...document.querySelectorAll('nav [class^=t]')].filter(e => e.checkVisibility()).length") <= 1
    browser.run("document.getElementById('only2').click()")
    assert shown(browser) == ["b", "c"]
    browser.run("document.querySelector('button').click()")
    browser.wait_for(laid_out)
    assert shown(browser) == ["b", "a", "c"] and browser.text() == text


def test_no_script_of_a_text_runs(show):
    hostile = "<script>document.title='changed'</script><img src=x onerror=\"document.title='changed'\">"
    browser = show(record(hostile, (0, 8, hostile, 1.0)), types=[hostile], name=hostile)
    assert browser.run("document.title").startswith("Entities of <script>")
    browser.wait_for("document.querySelector('main p').innerText")
    assert browser.run("document.querySelector('main p').innerText") == hostile
    assert browser.run("document.scripts.length + document.images.length") == 0

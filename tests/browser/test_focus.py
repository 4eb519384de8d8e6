"""The keeper of the keyboard's place, on a page whose every change and whose clock the test itself makes."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.browser
UI = Path(__file__).resolve().parents[2] / "ui"
# As Streamlit has it: what others have moved aside is shown for as long as the focus is in it.
PAGE = """
<style>.aside:not(:focus-within) { display: none; }</style>
<main data-testid="stMain" data-test-script-state="notRunning">
  <h1>Title</h1>
  <div id="control"><button>Run</button></div>
  <div class="st-key-lesson"><h2>Lesson</h2></div>
  <div class="st-key-room"><h2>Room</h2></div>
  <button id="other">Other</button>
</main>
<script>
  const one = (selector) => document.querySelector(selector);
  const at = () => (document.activeElement === document.body ? "" : document.activeElement.innerText);
  const runs = (yes) => { one("main").dataset.testScriptState = yes ? "running" : "notRunning"; };
  let told = 0;
  const show = (target, once = "", time = ++told, view = "page") =>
    mount({ data: { target, view, once, time } });
  const aside = () => { one("#control").className = "aside"; one("main").append(one("#control")); };

  let now = 0;
  const due = [];
  performance.now = () => now;
  window.setTimeout = (then, ms = 0) => due.push([now + ms, then]);
  const pass = async (ms) => {
    for (const end = now + ms; now <= end; now += 10) {
      await null; // observers first
      due.filter(([when]) => when <= now).forEach((task) => { due.splice(due.indexOf(task), 1); task[1](); });
    }
  };
</script>
"""
LOAD = """async (code) => {
  const file = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  window.mount = (await import(file)).default;
}"""
LONG = 60_000  # ms, of the page's own clock: more than any wait of the keeper


@pytest.fixture
def page(context):
    """The button has the focus, and its script runs."""
    made = context.new_page()
    made.set_content(PAGE)
    files = ("scrolling.js", "popovers.js", "focus.js")
    code = "\n".join((UI / name).read_text(encoding="utf-8") for name in files)
    made.evaluate(LOAD, code)
    made.evaluate("() => { show('lesson'); one('button').focus(); runs(true); }")
    assert made.evaluate("at()") == "Run"
    yield made
    made.close()


def after(page, change):
    """What has the focus long after the change."""
    page.evaluate(f"async () => {{ {change}; await pass({LONG}); }}")
    return page.evaluate("at()")


def test_a_control_that_is_hidden_first_and_gone_then_gives_way_to_what_is_named(page):
    after(page, "aside()")
    assert after(page, "one('#control').remove(); show('room'); runs(false)") == "Room"


def test_a_control_that_is_hidden_and_comes_back_has_the_focus_again(page):
    after(page, "aside()")
    assert after(page, "one('#control').className = ''; show('room'); runs(false)") == "Run"


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_who_has_left_a_control_is_called_nowhere_when_it_goes(page, by):
    page.evaluate("one('#other').remove()")
    if by == "mouse":
        page.mouse.click(600, 600)
    else:
        page.keyboard.press("Tab")
    after(page, "null")
    assert after(page, "one('#control').remove(); show('room'); runs(false)") == ""


def test_what_is_named_once_waits_for_the_end_of_a_script_of_any_length(page):
    after(page, "show('lesson', 'room'); one('#control').remove()")
    assert after(page, "runs(false)") == "Room"


def test_what_was_named_once_is_not_named_again_where_streamlit_mounts_anew(page):
    assert after(page, "show('lesson', 'room', 5); one('#control').remove(); runs(false)") == "Room"
    assert after(page, "one('#other').focus(); show('lesson', 'room', 5); one('#other').remove()") == "Lesson"


def test_what_an_earlier_script_named_comes_too_late(page):
    assert (
        after(page, "show('room', '', 5); show('lesson', '', 4); one('#control').remove(); runs(false)")
        == "Room"
    )


def test_in_a_long_script_what_is_there_has_the_focus_and_then_what_is_named(page):
    assert after(page, "one('.st-key-lesson').remove(); one('#control').remove()") == "Title"
    assert after(page, "show('room'); runs(false)") == "Room"


def test_who_goes_on_from_there_is_not_called_back(page):
    assert after(page, "one('#control').remove()") == "Lesson"
    after(page, "one('#other').focus()")
    assert after(page, "show('room'); runs(false)") == "Other"


def test_what_nobody_has_chosen_gives_way_to_what_another_view_names(page):
    assert after(page, "show(''); one('#control').remove(); runs(false)") == "Title"
    assert after(page, "show('room')") == "Title", "the same view"
    assert after(page, "show('lesson', '', ++told, 'another')") == "Lesson"
    assert after(page, "show('', '', ++told, 'page')") == "Title"
    after(page, "one('#other').focus()")
    assert after(page, "show('lesson', '', ++told, 'another')") == "Other", "a person's choice"

"""What a person reads off the live panel, for the browser tests."""

import re
import time


class Panel:
    """The live panel of one tab."""

    def __init__(self, page, transport=""):
        # With a transport named, the panel that is just being replaced does not count.
        self.page = page
        self.root = page.locator(f'.lab[data-transport="{transport}"]' if transport else ".lab")
        self.root.wait_for(state="visible")

    def data(self, name):
        return self.root.get_attribute(f"data-{name}") or ""

    @property
    def step(self):
        text = self.root.get_by_role("status").inner_text()
        return int(re.fullmatch(r"step (\d+)", text)[1])

    @property
    def state(self):
        return self.data("state")

    def wait(self, condition, what, seconds=40):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if condition():
                return
            self.page.wait_for_timeout(50)
        raise AssertionError(
            f"waited {seconds} s for {what}; state {self.state!r}, step {self.step}, "
            f"frames {self.data('frames')!r}, transport {self.data('transport')!r}"
        )

    def wait_ready(self):
        self.wait(lambda: int(self.data("frames") or 0) >= 1, "the first frame")
        return self

    def wait_step(self, least):
        self.wait(lambda: self.step >= least, f"step {least}")

    def wait_state(self, *names):
        self.wait(lambda: self.state in names, f"state {names}")

    def pause(self):
        self.press("Pause")
        return self.settled("paused")

    def settled(self, *names):
        """The step once the state is one of these and the step has stood still for a second.

        The slice at work when a pause was asked for still ends, however long a loaded machine takes for it.
        """
        self.wait_state(*names)
        held, since = self.step, time.monotonic()

        def still():
            nonlocal held, since
            if self.step != held:
                held, since = self.step, time.monotonic()
            return time.monotonic() - since > 1

        self.wait(still, "the step to stand still")
        return held

    def press(self, name):
        self.page.get_by_role("button", name=name, exact=True).click()

    def inks(self, name):
        """How many different colours a canvas shows, and the share of its pixels that are not transparent."""
        return self.root.locator(f"canvas.{name}").evaluate(
            """canvas => {
                const { width, height } = canvas;
                const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
                const colours = new Set();
                let drawn = 0;
                for (let k = 0; k < pixels.length; k += 4) {
                    if (pixels[k + 3] < 200) continue;
                    drawn += 1;
                    colours.add([pixels[k] >> 4, pixels[k + 1] >> 4, pixels[k + 2] >> 4].join());
                }
                return [colours.size, drawn / (width * height)];
            }"""
        )

    def picture(self, name):
        """The canvas's content, to see whether it changed."""
        return self.root.locator(f"canvas.{name}").evaluate("canvas => canvas.toDataURL()")

    def still_picture(self, name, seconds=0.6):
        """The canvas's content once nothing in it has moved for so long."""
        held, since = self.picture(name), time.monotonic()

        def still():
            nonlocal held, since
            now = self.picture(name)
            if now != held:
                held, since = now, time.monotonic()
            return time.monotonic() - since > seconds

        self.wait(still, f"the {name} to stand still")
        return held

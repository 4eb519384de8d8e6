"""Links: whatever the address, a config that is whole, and a sentence for each thing refused."""

import random
from typing import Any

from hypothesis import strategies as st

import datasets
from lab.config import RunConfig
from lab.links import read_settings
from lab.settings import settings
from losslib import catalog
from losslib.params import Param
from tests.fuzz.holds import Draws, holds

PARAMS: dict[str, Param] = {
    **settings(),
    **{f"{n}.{o}": p for n, c in catalog.losses().items() for o, p in c.params.items()},
    **{f"{n}.{o}": p for n, s in datasets.catalog().items() for o, p in s.options.items()},
    **{f"{n}.{o}": p for n, c in catalog.miners().items() for o, p in c.params.items()},
}
NAMES = sorted(PARAMS)
OWN = {
    owner: [n for n in NAMES if n.partition(".")[0] == owner or "." not in n]
    for owner in {n.partition(".")[0] for n in NAMES}
}
PLAIN = [n for n in NAMES if "." not in n]
FITS = {n: [p.format(one) for one in p.valid.examples_in()] or ["0"] for n, p in PARAMS.items()}
ODD = ["nan", "inf", "-1", "1e999", "0", "true", "None", "1,2", "９", " 3 ", "1e-320", "", "-0.0", "1_0"]
EVENTS = ["3:lr=0.1", "9:lr=", ":", "1:lr=nan,2:x=1", "0:lr=0.1", "5:loss=x", "2:lr=0.1,2:lr=0.2"]


@st.composite
def forms(draw: Any) -> dict[str, str]:
    """Which keys an address has, most of them existing, and for each the text of a stranger."""
    loss = draw(st.sampled_from(sorted(catalog.losses())))
    data = draw(st.sampled_from(sorted(datasets.catalog())))
    near = [*OWN.get(loss, PLAIN), *OWN.get(data, PLAIN)]
    near_keys = draw(st.lists(st.sampled_from(near), max_size=5))
    far_keys = draw(st.lists(st.sampled_from(NAMES), max_size=2))
    strange = draw(st.text(max_size=12))
    found = dict.fromkeys([*near_keys, *far_keys], strange)
    if draw(st.booleans()):
        found |= {"loss": loss, "data": data}
    if draw(st.integers(0, 4)) == 0:
        found[draw(st.text(max_size=8))] = strange
    if draw(st.integers(0, 4)) == 0:
        found["events"] = draw(st.sampled_from(EVENTS))
    return found


def filled(form: dict[str, str], draw: random.Random) -> dict[str, str]:
    """The form with values that fit, mostly."""
    found = {}
    for name, strange in form.items():
        chance = draw.random()
        if name not in FITS or chance < 0.1 or (name in ("loss", "data") and chance < 0.8):
            found[name] = strange
        elif chance < 0.7:
            found[name] = draw.choice(FITS[name])
        elif chance < 0.8:
            found[name] = draw.choice(ODD)
        elif chance < 0.9:
            found[name] = repr(draw.choice([1, -1]) * 10 ** draw.uniform(-320, 308))
        else:
            found[name] = str(draw.randint(-(10 ** draw.randint(0, 25)), 10 ** draw.randint(0, 25)))
    return found


@holds(weight=6, form=forms())
def a_link_gives_a_config_and_says_what_it_refused(form: dict[str, str], draws: Draws) -> None:
    """The config survives the trips through a link and through JSON."""
    for draw in draws:
        address = filled(form, draw)
        config, refusals = read_settings(address)
        assert all(isinstance(one, str) and one for one in refusals)
        again, said = read_settings(config.to_settings())
        assert again == config, (address, said)
        assert not said, address
        assert RunConfig.from_json(config.to_json()) == config, address
        full, said = read_settings(config.to_settings(full=True))
        assert full == config, (address, said)

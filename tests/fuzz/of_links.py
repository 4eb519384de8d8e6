"""Links: whatever the address, a config that is whole, and a sentence for each thing refused."""

from typing import Any

from hypothesis import strategies as st

import datasets
from lab.config import RunConfig
from lab.links import read_settings
from lab.settings import settings
from losslib import catalog
from losslib.params import Param
from tests.fuzz.holds import holds

PARAMS: dict[str, Param] = {
    **settings(),
    **{f"{n}.{o}": p for n, c in catalog.losses().items() for o, p in c.params.items()},
    **{f"{n}.{o}": p for n, s in datasets.catalog().items() for o, p in s.options.items()},
    **{f"{n}.{o}": p for n, c in catalog.miners().items() for o, p in c.params.items()},
}
ODD = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["nan", "inf", "-1", "1e999", "0", "true", "None", "1,2", "９", " 3 ", "1e-320"]),
    st.floats().map(str),
    st.integers().map(str),
)


@st.composite
def addresses(draw: Any) -> dict[str, str]:
    """Keys that exist, mostly, with values that fit, sometimes."""
    loss = draw(st.sampled_from(sorted(catalog.losses())))
    data = draw(st.sampled_from(sorted(datasets.catalog())))
    found: dict[str, str] = {}
    for _ in range(draw(st.integers(0, 6))):
        own = draw(st.booleans())
        names = [n for n in PARAMS if not own or n.partition(".")[0] in (loss, data) or "." not in n]
        name = draw(st.sampled_from(names))
        param = PARAMS[name]
        fits = st.sampled_from([param.format(one) for one in param.valid.examples_in()] or ["0"])
        found[name] = draw(st.one_of(fits, fits, ODD))
    if draw(st.booleans()):
        found |= {"loss": loss, "data": data}
    if draw(st.integers(0, 4)) == 0:
        found[draw(st.text(max_size=8))] = draw(ODD)
    if draw(st.integers(0, 4)) == 0:
        found["events"] = draw(st.one_of(ODD, st.sampled_from(["3:lr=0.1", "9:lr=", ":", "1:lr=nan,2:x=1"])))
    return found


@holds(weight=6, address=addresses())
def a_link_gives_a_config_and_says_what_it_refused(address: dict[str, str]) -> None:
    """The config survives the trips through a link and through JSON."""
    config, refusals = read_settings(address)
    assert all(isinstance(one, str) and one for one in refusals)
    again, said = read_settings(config.to_settings())
    assert again == config, said
    assert not said
    assert RunConfig.from_json(config.to_json()) == config
    full, said = read_settings(config.to_settings(full=True))
    assert full == config, said

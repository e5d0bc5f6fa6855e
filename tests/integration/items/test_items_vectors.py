"""An item's own vector comes back where a get asks for it, and nowhere else."""

from __future__ import annotations

import pytest

from conftest import new_key
from recollect.client import Client
from recollect.doors.http.app import create_app
from recollect.models.items import FindItems, GetItem, PutItem
from support.service.serving import serving

PATH = ("a", "b")


async def test_a_get_gives_back_the_vector_if_asked(recollect):
    _, secret = await new_key(recollect)
    async with serving(create_app(recollect=recollect)) as url, Client(url, secret) as client:
        mind = await client.mind("ada", "li")
        await mind.items.batch([PutItem(PATH, "one", {}, embedding=[3.0, 4.0]), PutItem(PATH, "none", {})])
        one, bare, none, found = await mind.items.batch(
            [
                GetItem(PATH, "one", vector=True),
                GetItem(PATH, "one"),
                GetItem(PATH, "none", vector=True),
                FindItems(PATH, embedding=[3, 4]),
            ]
        )
        assert one.embedding == pytest.approx((0.6, 0.8))
        assert bare.embedding == none.embedding == found[0].item.embedding == ()
        assert (await mind.items.get(PATH, "one")).embedding == ()

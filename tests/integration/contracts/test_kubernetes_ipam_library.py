"""The IPAM library on a real kube-apiserver; calls that race have connections of their own."""

from __future__ import annotations

import pytest

from adapters.memory.clock import MemoryClock
from contracts.ipam_assign import AutoAssignContract
from contracts.ipam_ensure_block import EnsureBlockContract
from contracts.ipam_library import AffinityContract, AttributesContract, ReleaseContract, SettingsContract
from contracts.ipam_limits import AssignIpContract, BorrowingContract, HandleLimitContract
from contracts.ipam_owners import OwnerAttributesContract
from contracts.ipam_pools import PoolsContract
from contracts.ipam_promotion import PromotionContract
from contracts.ipam_races import OnConnections, RaceContract
from contracts.ipam_windows import HostReservedAttrContract, WindowsContract
from ports.errors import Refused
from worlds.kubernetes_world import Administered, open_to


@pytest.fixture(scope="module", params=["v1", "v3"])
def shared(request, served):
    """Each test runs in both API groups, all of one before all of the other."""
    served.group = request.param
    return served


class OnKubernetes:
    @pytest.fixture
    def clock(self):
        return MemoryClock()

    @pytest.fixture
    def client(self, shared):
        return shared.fresh(shared.group)

    @pytest.fixture
    def store(self, clock, shared, client):
        return Administered(shared.transport, clock, client, shared.group)


class TestRelease(OnKubernetes, ReleaseContract):
    pass


class TestAttributes(OnKubernetes, AttributesContract):
    pass


class TestAffinities(OnKubernetes, AffinityContract):
    pass


class TestSettings(OnKubernetes, SettingsContract):
    def test_what_is_still_cooling_is_left_alone(self, cooling):
        """LIB-243: the server takes no such long time."""
        with pytest.raises(Refused, match="should be less than or equal to 1200"):
            cooling.configure(cooldown_seconds=100_000)


class TestOwnerAttributes(OnKubernetes, OwnerAttributesContract):
    pass


class TestPromotion(OnKubernetes, PromotionContract):
    pass


class TestAutoAssign(OnKubernetes, AutoAssignContract):
    pass


class TestPools(OnKubernetes, PoolsContract):
    @pytest.mark.parametrize(("text", "size"), [("fd00::/48", 64), ("10.0.0.0/8", 16)])
    def test_blocks_that_would_not_fit_in_a_record_are_refused_at_once(self, library, text, size):
        """By the server already."""
        with pytest.raises(Refused, match=f"spec.blockSize: Invalid value: {size}"):
            library.pool(text, size)


class TestAssignIp(OnKubernetes, AssignIpContract):
    pass


class TestEnsureBlock(OnKubernetes, EnsureBlockContract):
    pass


class TestHostReservedAttr(OnKubernetes, HostReservedAttrContract):
    pass


class TestWindows(OnKubernetes, WindowsContract):
    pass


class Racing(OnConnections, OnKubernetes):
    @pytest.fixture
    def connect(self, shared, client):
        return lambda clock: Administered(open_to(shared.server), clock, client, shared.group)


class TestRaces(Racing, RaceContract):
    pass


class TestHandleLimit(Racing, HandleLimitContract):
    pass


class TestBorrowing(Racing, BorrowingContract):
    pass

"""What every cluster keeps. `ClusterContract`: provide `cluster` with a namespace `web` labelled team=blue.

`AbsentClusterContract`: provide `absent`, a cluster that is not configured.
"""

from __future__ import annotations

import pytest

from ports.clock import Deadline
from ports.cluster import Cluster
from ports.errors import BadConfiguration, Missing

SOON = Deadline(float("inf"))


class ClusterContract:
    def test_a_namespace_has_labels(self, cluster: Cluster) -> None:
        assert cluster.namespace("web", SOON).labels["team"] == "blue"

    def test_an_unknown_namespace_is_missing(self, cluster: Cluster) -> None:
        with pytest.raises(Missing, match="nowhere"):
            cluster.namespace("nowhere", SOON)

    def test_a_node_that_nobody_knows_has_no_pods(self, cluster: Cluster) -> None:
        assert cluster.pods_on("nowhere", SOON) == ()


class AbsentClusterContract:
    def test_without_a_cluster_the_text_says_so(self, absent: Cluster) -> None:
        for verb in (absent.namespace, absent.pods_on, absent.pod_cidrs):
            with pytest.raises(BadConfiguration) as told:
                verb("web", SOON)
        assert str(told.value) == (
            "invalid configuration: no configuration has been provided, "
            "try setting KUBERNETES_MASTER environment variable"
        )

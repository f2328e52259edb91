"""What every issuer of tokens keeps: derive, provide `issuer`, in whose cluster `kube-system` has the account
`calico-cni-plugin` and no account `nobody`.
"""

from __future__ import annotations

import pytest

from domain.install.token import VALIDITY
from ports.clock import Deadline
from ports.errors import Missing
from ports.token_issuer import TokenIssuer

SOON = Deadline(1e8)
ACCOUNT = ("kube-system", "calico-cni-plugin")


class TokenIssuerContract:
    def test_a_token_is_good_for_as_long_as_was_asked(self, issuer: TokenIssuer) -> None:
        """TOK-013"""
        issued = issuer.request_token(*ACCOUNT, VALIDITY, SOON)
        assert issued.text
        assert issued.good_for == VALIDITY

    def test_a_shorter_life_is_granted_as_well(self, issuer: TokenIssuer) -> None:
        assert issuer.request_token(*ACCOUNT, 600, SOON).good_for == 600

    def test_each_token_is_another(self, issuer: TokenIssuer) -> None:
        assert len({issuer.request_token(*ACCOUNT, 600, SOON).text for _ in range(3)}) == 3

    def test_an_account_that_is_not_there_is_missing_by_name(self, issuer: TokenIssuer) -> None:
        with pytest.raises(Missing, match="kube-system/nobody"):
            issuer.request_token("kube-system", "nobody", VALIDITY, SOON)

    def test_no_token_is_shown(self, issuer: TokenIssuer) -> None:
        issued = issuer.request_token(*ACCOUNT, VALIDITY, SOON)
        assert issued.text not in repr(issued)

    def test_it_knows_the_server_and_the_namespace(self, issuer: TokenIssuer) -> None:
        assert issuer.cluster().server.startswith("https://")
        assert issuer.cluster().ca.startswith(b"-----BEGIN CERTIFICATE-----\n")
        assert not issuer.cluster().insecure
        assert issuer.own_namespace() == "kube-system"

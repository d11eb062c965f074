"""The paper's claims, sentence by sentence, each with a measurement and a verdict."""

from varnn.paper.claims.claim import Claim
from varnn.paper.claims.page import claims, claims_page

__all__ = ["Claim", "claims", "claims_page"]

"""The proof as a test: `pytest test_route.py`, with routeproof installed."""


def test_the_route_may_still_be_used(routeproof):
    judgement = routeproof("proof.yaml", require="wait")
    assert judgement.gate("correctness").status == "passed"

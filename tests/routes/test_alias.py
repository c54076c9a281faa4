from routeproof.proof.route import RouteSpec
from routeproof.routes.diff import diff
from routeproof.routes.inventory import take_inventory
from routeproof.routes.parity import parity_problems
from routeproof.routes.read_back import ReadBack


def said(path):
    return ReadBack(
        engine="llama.cpp",
        fields={"model": path, "engine.name": "llama.cpp"},
        cannot_tell=(),
        models=("chat",),
    )


SPEC = RouteSpec(endpoint="http://127.0.0.1:1/v1", model="chat")


def test_an_alias_that_the_endpoint_serves_contradicts_nothing():
    one = take_inventory(SPEC, said("/models/a.gguf"))
    assert one.value("model") == "chat"
    assert not parity_problems(diff(one, one, SPEC))


def test_two_files_behind_one_alias_are_an_undeclared_difference():
    one = take_inventory(SPEC, said("/models/a.gguf"))
    two = take_inventory(SPEC, said("/models/b.gguf"))
    problems = parity_problems(diff(one, two, SPEC))
    assert [(p.kind, p.field) for p in problems] == [("undeclared", "model.file")]


def test_the_same_file_in_another_folder_is_no_difference():
    one = take_inventory(SPEC, said("/models/a.gguf"))
    two = take_inventory(SPEC, said("/data/a.gguf"))
    assert not diff(one, two, SPEC).changes

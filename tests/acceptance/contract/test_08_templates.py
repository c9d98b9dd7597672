"""Templates (contract §8), asked of `/debug/template` and of running steps."""

from __future__ import annotations

import base64
import hashlib

import pytest

from tests.integration.web.house import step

pytestmark = pytest.mark.contract("8")

DATA = {
    "name": "Ada",
    "n": 7,
    "f": 2.5,
    "yes": True,
    "no": False,
    "none": None,
    "empty": "",
    "list": [10, {"k": "v"}, "c"],
    "obj": {"a": {"b": 1}},
    "input": {"q": "from input"},
    "words": "  Mixed Case  ",
    "neg": -3.75,
}
CONFIG = {"region": "eu"}
OUTPUTS = {"one": {"id": 5, "items": [1, 2]}}


def ask(server, template, **more):
    body = {
        "template": template,
        "context_data": DATA,
        "context_config": CONFIG,
        "outputs": OUTPUTS,
        **more,
    }
    answer = server.post("/debug/template", body, tenant=None)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.mark.parametrize(
    ("template", "result", "kind"),
    [
        # roots
        ("{{context.data.name}}", "Ada", "string"),
        ("{{data.name}}", "Ada", "string"),
        ("{{context.config.region}}", "eu", "string"),
        ("{{config.region}}", "eu", "string"),
        ("{{outputs.one.id}}", 5, "number"),
        ("{{steps.one.id}}", 5, "number"),
        ("{{input.q}}", "from input", "string"),
        ("{{ context.data.name }}", "Ada", "string"),
        # whole templates keep their type
        ("{{data.n}}", 7, "number"),
        ("{{data.f}}", 2.5, "number"),
        ("{{data.yes}}", True, "boolean"),
        ("{{data.none}}", None, "null"),
        ("{{data.list}}", DATA["list"], "array"),
        ("{{data.obj}}", DATA["obj"], "object"),
        # paths
        ("{{data.list.0}}", 10, "number"),
        ("{{data.list.1.k}}", "v", "string"),
        ("{{data.list[0]}}", None, "null"),
        ("{{data.list.9}}", None, "null"),
        ("{{data.nobody.at.all}}", None, "null"),
        ("{{data.name.length}}", None, "null"),
        # embedded in text
        ("Hi {{data.name}}!", "Hi Ada!", "string"),
        ("{{data.n}}/{{data.f}}", "7/2.5", "string"),
        ("x{{data.nobody}}y", "xnully", "string"),
        ("x{{data.none}}y", "xnully", "string"),
        ("v={{data.yes}}", "v=true", "string"),
        ("o={{data.obj}}", 'o={"a":{"b":1}}', "string"),
        ("l={{outputs.one.items}}", "l=[1,2]", "string"),
        # functions
        ("{{json(data.obj)}}", '{"a":{"b":1}}', "string"),
        ("{{len(data.list)}}", 3, "number"),
        ("{{len(data.name)}}", 3, "number"),
        # alternatives
        ("{{data.nobody|data.name}}", "Ada", "string"),
        ("{{data.nobody|abc|def}}", "abc", "string"),
        ("{{context.data.x|abc|def}}", "abc", "string"),
        ("{{data.none|'quoted text'}}", "quoted text", "string"),
        ('{{data.none|"quoted"}}', "quoted", "string"),
        ("{{data.nobody|5}}", 5, "number"),
        ("{{data.nobody|2.5}}", 2.5, "number"),
        ("{{data.nobody|true}}", True, "boolean"),
        ("{{data.nobody|null}}", None, "null"),
        ("{{data.no|other}}", False, "boolean"),
        ("{{data.empty|other}}", "", "string"),
        ("{{data.nobody|data.none|outputs.one.id}}", 5, "number"),
        # filters
        ("{{data.name|upper}}", "ADA", "string"),
        ("{{data.name|lower}}", "ada", "string"),
        ("{{data.words|trim}}", "Mixed Case", "string"),
        ("{{data.words|trim|upper}}", "MIXED CASE", "string"),
        ("{{data.neg|abs}}", 3.75, "number"),
        ("{{data.neg|round(1)}}", -3.8, "number"),
        ("{{data.words|trim|url_encode}}", "Mixed%20Case", "string"),
        ("{{data.name|base64}}", base64.b64encode(b"Ada").decode(), "string"),
        ("{{data.name|base64|base64_decode}}", "Ada", "string"),
        ("{{data.empty|default(x)}}", "x", "string"),
        ("{{data.nobody|default('a b')}}", "a b", "string"),
        ("{{data.name|replace(A, O)}}", "Oda", "string"),
        ("{{data.name|replace('a', data.n)}}", "Ad7", "string"),
        ("{{data.words|trim|truncate(5)}}", "Mixed", "string"),
        ("{{data.words|trim|truncate(5, '...')}}", "Mixed...", "string"),
        ("{{outputs.one.items|join('-')}}", "1-2", "string"),
        ("{{data.name|split(d)}}", ["A", "a"], "array"),
        ("{{data.name|hash('sha256')}}", hashlib.sha256(b"Ada").hexdigest(), "string"),
        # literal text
        ("no braces", "no braces", "string"),
        ("{{data.name", "{{data.name", "string"),
        ("data.name}}", "data.name}}", "string"),
        ("{{data.nobody|'}}'}}", "}}", "string"),
    ],
)
def test_a_template_gives(server, template, result, kind):
    told = ask(server, template)
    assert "error" not in told
    assert (told["result"], told["result_type"]) == (result, kind)


@pytest.mark.parametrize("template", ["{{ data.n > 5 }}", "{{ data.n + 1 }}", "{{ 1 == 1 }}"])
def test_operators_are_not_evaluated(server, template):
    told = ask(server, template)
    assert told.get("result") not in (True, 8, 1)


@pytest.mark.parametrize("template", ["{{foo.bar}}", "{{nobody}}", "a {{secret.x}} b"])
def test_an_unknown_root_is_an_error(server, template):
    told = ask(server, template)
    assert told["error"]
    assert "result" not in told
    (entry,) = told["entries"]
    assert entry["status"] == "error"
    assert entry["error"]


def test_objects_and_arrays_are_walked_and_keys_are_not(server):
    template = {"{{data.n}}": ["{{data.n}}", {"deep": "{{data.name|upper}}"}], "plain": 1}
    told = ask(server, template)
    assert told["result"] == {"{{data.n}}": [7, {"deep": "ADA"}], "plain": 1}
    assert told["result_type"] == "object"


@pytest.mark.parametrize(
    ("template", "wanted"),
    [
        (
            "{{ data.n }}",
            {
                "expression": "data.n",
                "status": "ok",
                "value": 7,
                "result_type": "number",
                "source": "data.n",
                "fallback_used": False,
                "coerced_to_string": False,
            },
        ),
        ("x{{data.n}}", {"coerced_to_string": True, "status": "ok"}),
        ("x{{data.name}}", {"coerced_to_string": False}),
        ("{{data.nobody}}", {"status": "missing", "fallback_used": False}),
        ("{{data.none}}", {"status": "null"}),
        (
            "{{data.nobody|data.name}}",
            {"status": "ok", "source": "data.name", "fallback_used": True, "value": "Ada"},
        ),
        (
            "{{data.nobody|abc}}",
            {"status": "ok", "source": "literal", "fallback_used": True, "value": "abc"},
        ),
    ],
)
def test_each_expression_has_an_entry_that_tells_where_its_value_came_from(
    server, template, wanted
):
    (entry,) = ask(server, template)["entries"]
    assert wanted.items() <= entry.items(), entry
    assert entry["param_path"] == "_"


@pytest.mark.parametrize("template", ["plain", "{{data.name", ""])
def test_text_without_an_expression_has_no_entry(server, template):
    assert ask(server, template)["entries"] == []


def test_entries_are_in_the_order_of_the_expressions(server):
    entries = ask(server, "{{data.n}} {{data.name}} {{data.nobody}}")["entries"]
    assert [each["expression"] for each in entries] == ["data.n", "data.name", "data.nobody"]


@pytest.mark.parametrize("secret", ["sk_live_abcdefgh12345678", "Bearer abcdefghijklmnop"])
def test_what_looks_like_a_secret_is_hidden(server, secret):
    told = ask(server, "{{data.key}}", context_data={"key": secret})
    (entry,) = told["entries"]
    assert (entry["status"], entry["value"]) == ("redacted", "[REDACTED]")
    assert told["result"] == "[REDACTED]"
    inside = ask(server, "key={{data.key}}", context_data={"key": secret})
    assert secret not in str(inside)


def test_a_question_without_context_is_answered_too(server):
    answer = server.post("/debug/template", {"template": "{{data.x|y}}"}, tenant=None)
    assert answer.json()["result"] == "y"
    assert server.post("/debug/template", {}, tenant=None).status_code == 422


def test_editors_ask_under_another_name(server):
    body = {"template": "{{data.x}}", "context_data": {"x": 1}}
    assert server.post("/sequences/inspect-template", body).json()["result"] == 1


# in running steps --------------------------------------------------------------------------------


def run(server, params, data=None):
    instance = server.instance(server.sequence(step("s", "transform", params=params)), data)
    assert server.settle(instance) == "completed"
    return instance, server.outputs(instance)[0][1]


def test_a_step_sees_its_instance_and_its_runtime_and_the_state(server):
    params = {
        "id": "{{instance_id}}",
        "step": "{{runtime.current_step}}",
        "state": "{{state.n|none}}",
    }
    instance, output = run(server, params)
    assert output == {"id": instance, "step": "s", "state": "none"}


def test_the_input_of_a_stored_block_can_be_seen_with_where_it_came_from(server):
    instance, _ = run(server, {"a": "{{data.x}}", "b": ["{{data.nobody|z}}"]}, {"x": 3})
    told = server.get(f"/instances/{instance}/blocks/s/resolved-input").json()
    assert told["result"] == {"a": 3, "b": ["z"]}
    assert [each["expression"] for each in told["entries"]] == ["data.x", "data.nobody|z"]
    missing = server.get(f"/instances/{instance}/blocks/nobody/resolved-input")
    assert missing.status_code == 404


def test_a_result_beyond_four_mebibytes_is_an_error(server):
    told = ask(server, "{{data.t|replace(x, data.t)}}", context_data={"t": "x" * 3_000})
    assert "4" in told["error"]
    assert "result" not in told

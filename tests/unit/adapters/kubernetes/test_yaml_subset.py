"""Our reader of kubeconfigs' YAML against PyYAML: what it takes, it takes as PyYAML does; what it does not, it says."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from adapters.kubernetes.credentials.kubeconfig import _parse as read  # by the subset, else by the library
from adapters.kubernetes.credentials.yaml_subset import YamlError, parse_yaml


class Oracle(yaml.SafeLoader):
    """PyYAML with what ours has: nulls and booleans, keys that are texts, and no key twice."""

    def construct_mapping(self, node, deep=False):
        found = {}
        for key, value in node.value:
            assert isinstance(key, yaml.ScalarNode)
            assert key.value not in found
            found[key.value] = self.construct_object(value, deep=True)
        return found

    def construct_yaml_map(self, node):
        yield self.construct_mapping(node)


Oracle.add_constructor("tag:yaml.org,2002:map", lambda loader, node: loader.construct_mapping(node))
Oracle.yaml_implicit_resolvers = {
    first: [(tag, rule) for tag, rule in rules if tag.rpartition(":")[2] in ("null", "bool")]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_by_oracle(text: str) -> object:
    return yaml.load(text, Oracle)  # noqa: S506 - derived from the safe one


class IndentedLists(yaml.SafeDumper):
    def increase_indent(self, flow=False, indentless=False):
        return super().increase_indent(flow, indentless=False)


words = st.sampled_from(
    [
        *("", "~", "null", "true", "no", "a", "- a", "a: b", "#c", "a #b", "'", '"'),
        *("x\ny", "x\n\ny\n", " a", "a ", "{", "12"),
    ]
)
# \x85, \u2028 and \u2029 end lines for PyYAML, which YAML 1.2 took back
texts = st.text(st.characters(codec="utf-8", exclude_characters="\x85\u2028\u2029"))
scalars = st.none() | st.booleans() | words | texts
names = st.sampled_from(["a", "b c", "a-b", "x.y/z", "'q'", "#", "- k", "k: v", "", "?", "{"])
keys = names | st.text("ab:# -'\"", max_size=6)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4), max_leaves=12
)
documents = st.dictionaries(keys, values, max_size=4)


def test_only_blanks_and_tabs_are_space():
    """A no-break space is a letter like any other to YAML, if not to Python."""
    assert parse_yaml("a: \xa0\n") == {"a": "\xa0"}


@pytest.mark.parametrize("break_", ["\\\n  ", "\\\n\n  ", "\\\n \n\t\n  ", "\\\n\\\n\n", "\n\\\n\n ", "\\\n\n"])
def test_an_escaped_break_joins_lines_and_empty_ones_behind_it_stay(break_):
    for text in (f'a: "b {break_}c"\n', f'- "{break_}"\n', f'["a{break_}  b", c]\n'):
        assert read(text) == read_by_oracle(text)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_as_on_any_system(end):
    text = "a: b\n# c\nd:\n- 'e\n\n  f'\n"
    assert read(text.replace("\n", end)) == read_by_oracle(text.replace("\n", end)) == {"a": "b", "d": ["e\nf"]}


@given(
    documents,
    st.sampled_from([yaml.SafeDumper, IndentedLists]),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, '"', "'", "|", ">"]),
    st.sampled_from([20, 80, 10_000]),
    st.booleans(),
)
def test_what_a_yaml_library_writes_is_read_as_it_was_meant(document, dumper, flow, style, width, start):
    text = yaml.dump(
        document,
        Dumper=dumper,
        default_flow_style=flow,
        default_style=style,
        width=width,
        explicit_start=start,
        allow_unicode=True,
        sort_keys=False,
    )
    try:
        found = read(text)
    except ValueError as error:
        expected = ("!!", "? ", "%") if "understood" in str(error) else ("{", "[")  # a text over lines within a flow
        assert any(mark in text for mark in expected), text
    else:
        assert found == document, text


def test_every_document_is_read_that_is_written_in_block_style_with_wide_lines():
    """Else the test before this one could refuse everything."""
    for document in ({"a": ["b", {"c": "x: y #z\n", "d": [[], {}]}]}, {"a": None, "b": [True, None, "true"]}):
        assert read(yaml.safe_dump(document, default_flow_style=False, width=10_000)) == document


def test_the_subset_reads_every_document_of_one_line_texts_in_block_style():
    for document in ({"a": ["b", {"c": "x: y #z", "d": [[], {}]}]}, {"a": None, "b": [True, None, "true", ""]}):
        assert parse_yaml(yaml.safe_dump(document, default_flow_style=False, width=10_000)) == document


# Without tabs and byte order marks, of which PyYAML takes fewer than it should.
pieces = st.sampled_from(
    [
        *("a", "b", "c: ", "k:", "- ", "-", "\n", "\n", "\n", "  ", "    ", " ", "#", " # x", "'", '"', "\\", "\\n"),
        *("|", ">", "|-", ">+", "|2", "{", "}", "[", "]", ",", ": ", ":", "null", "true", "~", "---", "...", "--- "),
        *("? ", "&", "*", "!", "%", "@", "`", "''", "\r\n", "x y", "1", "\\x41", "\\u00e4", "é"),
    ]
)


@given(st.lists(pieces, max_size=30).map("".join))
@example("a: |\n\n\n  b\n")
@example("a: b #c\n  d")
@example("- - a\n  - b\n-\n  c")
def test_what_is_understood_at_all_is_understood_as_the_library_does(text):
    try:
        found = parse_yaml(text)
    except YamlError:
        return
    assert found == read_by_oracle(text)


KUBECONFIG = """\
# Kubeconfig file for Calico CNI plugin. Installed by calico/node.
apiVersion: v1
kind: Config
clusters:
- name: local
  cluster:
    server: https://[10.96.0.1]:443
    certificate-authority-data: "LS0tLS1CRUdJTg=="
users:
  - name: calico
    user:
      token: eyJhbGciOiJSUzI1NiIsImtpZCI6Ik
      exec:
        args: ["--a", 'b''c',
               d]  # over lines
        env:
        - {name: A, value: "1"}
contexts:
- name: calico-context
  context: {cluster: local, user: calico}
current-context: calico-context
preferences: {}
"""


def test_a_kubeconfig_of_an_installer():
    found = read(KUBECONFIG)
    assert found == read_by_oracle(KUBECONFIG)
    assert found["users"][0]["user"]["exec"]["args"] == ["--a", "b'c", "d"]
    assert read("\ufeff" + KUBECONFIG.replace("\n", "\r\n")) == found
    in_blocks = yaml.safe_dump(found, width=10_000, sort_keys=False)
    assert parse_yaml("# by a tool\n" + in_blocks) == parse_yaml("\ufeff" + in_blocks.replace("\n", "\r\n")) == found


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("", None),
        ("# nothing\n", None),
        ("a:\tb", {"a": "b"}),
        ('{"a": 1, "b": [null, true, "\\u00e4"]}', {"a": 1, "b": [None, True, "ä"]}),
        ("{a: b, c: 'd'}", {"a": "b", "c": "d"}),
        ("5", "5"),
        ("--- {a: b}\n...\n", {"a": "b"}),
        ('a: "b\\\n   c"', {"a": "bc"}),
        ("a: >+\n  b\n  c\n\n", {"a": "b c\n\n"}),
        ("a: |2-\n    b\n", {"a": "  b"}),
    ],
)
def test_ways_to_write(text, meant):
    assert read(text) == meant


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: b\nc: &x d", "line 2: an anchor is not understood"),
        ("a: *x", "line 1: an alias is not understood"),
        ("a: !!binary d", "line 1: a tag is not understood"),
        ("? a\n: b", "line 1: a complex key is not understood"),
        ("%YAML 1.2\n---\na: b", "line 1: a directive is not understood"),
        ("a: b\n---\nc: d", "line 2: a second document"),
        ("a: b\n...\nc: d", "line 2: a second document"),
        ("...\n", "line 1: there is no document before its end"),
        ("--- text", "line 1: text after a document's beginning is not understood"),
        ("a: b\na: c", "line 2: a key that is there already"),
        ("{a: b,\na: c}", "line 1: a collection within a line is not understood"),
        ("a:\n  b: c\n\td: e", "line 3: a tab in the indentation"),
        ("a:\n  b: c\n d: e", "line 3: this is not indented as what is before it"),
        ("a: b\n  c: d", "line 2: a key cannot be here"),
        ("a: b: c", "line 1: a collection cannot begin here"),
        ("a: b\nc", "line 2: a key was expected here, and a colon after it"),
        ("a: 'b\nc: d", "line 1: a text in quotes over several lines is not understood"),
        ("a: 'b' c", "line 1: text after the end of a value"),
        ('a: "\\q"', "line 1: an escape that does not exist"),
        ('a: "\\xg0"', "line 1: an escape without its digits"),
        ("a: [b, c", "line 1: a collection within a line is not understood"),
        ("a: [b 'c' d: e]", "line 1: a collection within a line is not understood"),
        ("a: {b: c]", "line 1: a collection within a line is not understood"),
        ("a: {[b]: c}", "line 1: a collection within a line is not understood"),
        ("a: [b, ,]", "line 1: a collection within a line is not understood"),
        ("a: b\n  c", "line 2: a text over several lines is not understood"),
        ("a: {} b", "line 1: text after the end of a value"),
        ("a: |x\n  b", "line 1: a block of text is not understood"),
        ("a: @b", "line 1: a value cannot begin like this"),
        ("- \t- a", "line 1: a tab in the indentation"),
        ("[" * 100_000, "line 1: a collection within a line is not understood"),
        ("- " * 100_000, "line 1: it is nested too deeply"),
    ],
)
def test_what_is_not_understood_is_named_by_its_line(text, said):
    with pytest.raises(ValueError, match=r"^line ") as caught:
        parse_yaml(text)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("text", "line"),
    [("a: [b, c]\nd: [e\nf: g\n", 3), ("a: {b: c}\nd: {e: f]\n", 2), ("a:\n  b: |\n    c\n d: e\n", 4), ("a: *b", 1)],
)
def test_what_neither_reads_is_named_by_its_line(text, line):
    with pytest.raises(YamlError, match=f"^line {line}: "):
        read(text)


@given(st.text("ab:-# '\"\\n{}[],|>&*!?\n", max_size=30))
def test_errors_show_nothing_of_the_text(text):
    planted = f"token: planted{text}"
    said = ""
    try:
        parse_yaml(planted)
    except YamlError as error:
        said = str(error)
    assert "planted" not in said

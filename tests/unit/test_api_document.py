"""Manifests are read as kubectl reads them, and more strictly where it is silent."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, strategies as st

from hekla.api import document
from hekla.domain.errors import InvalidError
from tests.support.objects import JSON, TEXTS


def one(text: str) -> Any:
    [found] = document.load(text.encode())
    return found.value


def refusal(data: bytes | str) -> str:
    with pytest.raises(InvalidError) as refused:
        document.load(data if isinstance(data, bytes) else data.encode())
    text = str(refused.value)
    assert "\n" not in text
    return text


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("yes", True),
        ("Yes", True),
        ("on", True),
        ("y", True),
        ("true", True),
        ("TRUE", True),
        ("no", False),
        ("off", False),
        ("N", False),
        ("False", False),
        ("~", None),
        ("null", None),
        ("", None),
        ("Null", None),
        ("0644", 420),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b11", 3),
        ("-0b11", -3),
        ("1_000", 1000),
        ("+5", 5),
        ("-5", -5),
        ("08", 8),
        ("0", 0),
        ("00", 0),
        ("9223372036854775808", 2**63),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000),
        ("1.0", 1),
        ("-1.5e-3", -0.0015),
        ("1_0.5", 10.5),
        ("2001-01-01", "2001-01-01"),
        ("2001-01-01T00:00:00Z", "2001-01-01T00:00:00Z"),
        ("12:30:45", "12:30:45"),
        ("1e999", "1e999"),
        ("0xZZ", "0xZZ"),
        ("1.2.3", "1.2.3"),
        ("tRUE", "tRUE"),
        ("yep", "yep"),
        ("+", "+"),
        ("-x", "-x"),
        (".", "."),
        ("_1", "_1"),
        ("'yes'", "yes"),
        ('"0644"', "0644"),
        ("!!str 5", "5"),
        ("!!int 0x10", 16),
        ("! 5", "5"),
        ("!!binary aGVq", "hej"),
        ("!!float 5", 5),
        ("!!bool yes", True),
        ("5Gi", "5Gi"),
        ("=", "="),
    ],
)
def test_words_mean_what_they_mean_to_kubectl(word: str, value: Any) -> None:
    read = one(f"key: {word}")["key"]

    assert read == value
    assert type(read) is type(value)


def test_keys_become_texts() -> None:
    text = "{1: a, on: b, 1.5: c, x: d, 'no': e}"

    assert one(f"k: {text}")["k"] == {"1": "a", "true": "b", "1.5": "c", "x": "d", "no": "e"}


def test_several_documents_come_with_their_lines() -> None:
    text = "# first\na: 1\n---\n\n---\n# nothing\n---\nb: |\n  x\n  ---\n...\n--- {c: 2}\n"

    found = document.load(text.encode())

    assert [(each.line, each.value) for each in found] == [
        (1, {"a": 1}),
        (7, {"b": "x\n---\n"}),
        (12, {"c": 2}),
    ]


def test_a_list_is_its_items() -> None:
    found = document.load(b"apiVersion: v1\nkind: List\nitems: [{a: 1}, {b: 2}]\n")

    assert [each.value for each in found] == [{"a": 1}, {"b": 2}]


def test_a_directive_belongs_to_the_document_after_it() -> None:
    text = "%TAG !e! tag:yaml.org,2002:\n--- \na: !e!str 5\n---\nb: 1\n"

    assert [each.value for each in document.load(text.encode())] == [{"a": "5"}, {"b": 1}]


def test_anchors_and_merges_are_followed_and_do_not_share() -> None:
    value = one(
        "base: &b {x: {w: 1}, z: 1}\none: *b\ntwo: {<<: *b, z: 2}\nthree: {<<: [{z: 3}, *b]}\n"
    )

    assert value["one"] == {"x": {"w": 1}, "z": 1}
    assert value["two"] == {"x": {"w": 1}, "z": 2}
    assert value["three"] == {"x": {"w": 1}, "z": 3}
    assert value["one"]["x"] is not value["base"]["x"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "spec:\n  replicas: 1\n  x: 2\n  replicas: 2\n",
            "line 4: has the key 'replicas' again, which is in line 2 already",
        ),
        ('{"a": 1,\n "a": 2}', "line 2: has the key 'a' again, which is in line 1 already"),
        ("a: 1\n---\n1: x\n'1': y\n", "line 4: has the key '1' again"),
        ("a: 1\n\tb: 2\n", "line 2: is no YAML: a tab"),
        ("a: [1,\nb: 2\n", "is no YAML"),
        ("a: b: c\n", "line 1: is no YAML: mapping values are not allowed"),
        ("a: 1\nb: '\n", "is no YAML"),
        ("a: 'x\0'\n", "line 1: is no YAML: control characters are not allowed"),
        ("x: 1\na: &a [*a]\n", "line 2: has the anchor 'a' inside itself"),
        ("a: *b\n", "line 1: names the anchor 'b', which is not there"),
        ("a: !!python/object:os.system x\n", "line 1: has the tag"),
        ("a: !thing {}\n", "line 1: has the tag '!thing'"),
        ("a: !!int five\n", "line 1: is tagged as int"),
        ("a: !!binary '*'\n", "line 1: must be base64"),
        ("\na: .inf\n", "line 2: must be a finite number"),
        ("? [a]\n: b\n", "line 1: must have a text as its key"),
        ("? {a: b}\n: b\n", "line 1: must have a text as its key"),
        ("~: b\n", "line 1: must have a text as its key"),
        ("a: {<<: 5}\n", "line 1: merges what is no object"),
        ("- a\n", "line 1: must be an object, is a list"),
        ("a: 1\n---\nhello\n", "line 2: must be an object, is the value 'hello'"),
        ("kind: List\nitems: [5]\n", "line 1: must have objects in its list"),
        ("", "has no object in it"),
        ("# nothing\n---\n", "has no object in it"),
        ("a: " + "[" * 101 + "]" * 101, "line 1: must not be nested more than 100 deep"),
        ("a: " + "[" * 100_000, "line 1: is no YAML"),
        ("a: " + "{a: " * 5_000, "line 1:"),
        ("- " * 50_000, "line 1:"),
        ("---\n" * 20_000, "must be no more than 10000 documents"),
    ],
)
def test_a_bad_manifest_is_refused_with_its_line(text: str, message: str) -> None:
    assert message in refusal(text)


def test_every_bad_document_is_told_of() -> None:
    text = refusal("a: 1\n---\nb: [\n---\nc: 1\nc: 2\n---\nd: 1\n")

    assert "line 4: is no YAML" in text
    assert "line 6: has the key 'c' again" in text


def test_bytes_that_are_not_utf8_are_refused_with_their_line() -> None:
    assert refusal(b"a: 1\nb: \xff\n") == "line 2: has the byte 0xff, which is not UTF-8"


def test_a_byte_order_mark_is_no_content() -> None:
    assert document.load(b"\xef\xbb\xbfa: 1")[0].value == {"a": 1}


def test_a_manifest_too_large_is_refused_before_it_is_read() -> None:
    assert refusal(b"[" * (3 * 2**20 + 1)) == "must be no more than 3145728 bytes, has 3145729"


def test_anchors_cannot_blow_a_manifest_up() -> None:
    lines = ["a0: &a0 [x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]

    assert "must not hold more than 300000 values" in refusal("\n".join(lines))
    assert "must not hold more than 300000 values" in refusal(
        "\n---\n".join(["\n".join(lines[:6])] * 9)
    )


def test_json_is_read_with_all_its_escapes() -> None:
    assert one('\t{"a": "\\ud83d\\ude00\\/",\n\t"b": 1.0}') == {"a": "\U0001f600/", "b": 1}


@given(st.dictionaries(TEXTS, JSON, min_size=1))
def test_json_is_read_as_it_was_written(value: dict[str, Any]) -> None:
    assert one(json.dumps(value)) == value


@given(st.dictionaries(TEXTS, JSON, min_size=1))
def test_yaml_is_read_as_it_was_written(value: dict[str, Any]) -> None:
    assert one(yaml.safe_dump(value, default_style='"')) == value


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reader(data: bytes) -> None:
    try:
        found = document.load(data)
    except InvalidError:
        return
    assert all(isinstance(each.value, dict) for each in found)


@given(st.text(alphabet="ab:-?&*!|>{}[],#'\"%@\n\t <1~", max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        found = document.load(text.encode())
    except InvalidError:
        return
    assert all(isinstance(each.value, dict) for each in found)

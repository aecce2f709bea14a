"""Settings: where they come from, what they may be, and what is said of wrong ones."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, strategies as st

from hekla import config
from hekla.config import ConfigError, setting


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a thing."""

    database_url: str = setting(env="HEKLA_DATABASE_URL", secret=True)
    """Where Postgres is."""

    token: str = setting(default="", secret=True)
    """What it shows."""

    threads: int = setting(default=4, minimum=1)
    """How many
    at once."""

    ratio: float = 0.5
    verbose: bool = False
    idle: timedelta = timedelta(seconds=1)
    home: Path = Path("/var/hekla")
    runtime: Literal["process", "simulate"] = "process"
    colour: Colour = Colour.RED
    names: tuple[str, ...] = ()
    sizes: tuple[int, ...] = (1, 2)
    kubeconfig: str | None = None
    limit: int | None = None


URL = "postgresql://h/db"


def load(*argv: str, **environ: str) -> Settings:
    return config.load(Settings, "HEKLA_X", {"HEKLA_DATABASE_URL": URL, **environ}, argv)


def problems(*argv: str, **environ: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as raised:
        load(*argv, **environ)
    return raised.value.problems


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("threads", "12", 12),
        ("ratio", "0.25", 0.25),
        ("verbose", "true", True),
        ("verbose", "No", False),
        ("verbose", "1", True),
        ("idle", "3", timedelta(seconds=3)),
        ("idle", "0.5", timedelta(seconds=0.5)),
        ("idle", "3s", timedelta(seconds=3)),
        ("idle", "1h2m", timedelta(hours=1, minutes=2)),
        ("idle", "500ms", timedelta(milliseconds=500)),
        ("home", "/srv", Path("/srv")),
        ("runtime", "simulate", "simulate"),
        ("colour", "blue", Colour.BLUE),
        ("names", "a, b,", ("a", "b")),
        ("sizes", "3,4", (3, 4)),
        ("kubeconfig", "/etc/k", "/etc/k"),
        ("limit", "7", 7),
    ],
)
def test_a_value_is_read_alike_from_variable_and_flag(name: str, text: str, value: Any) -> None:
    flag = "--" + name

    by_variable = load(**{f"HEKLA_X_{name.upper()}": text})
    by_flag, by_word = (
        load(f"{flag}={text}"),
        load(*([flag, text] if name != "verbose" else [])),
    )

    assert getattr(by_variable, name) == value
    assert getattr(by_flag, name) == value
    assert name == "verbose" or getattr(by_word, name) == value


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("threads", "many", "'many' is not an integer"),
        ("threads", "0", "'0' must be at least 1"),
        ("ratio", "half", "'half' is not a number"),
        ("verbose", "maybe", "'maybe' is not true or false"),
        ("idle", "-1s", "'-1s' must be at least 0"),
        ("idle", "soon", "'soon' is not a duration such as 3s, 500ms or 1h2m"),
        ("idle", "9" * 40, f"'{'9' * 40}' is not a duration such as 3s, 500ms or 1h2m"),
        ("runtime", "docker", "'docker' is none of process, simulate"),
        ("colour", "green", "'green' is none of red, blue"),
        ("sizes", "1,x", "'1,x' is not an integer"),
        ("limit", "x", "'x' is not an integer"),
    ],
)
def test_a_value_that_cannot_be_read_is_shown(name: str, text: str, problem: str) -> None:
    variable = f"HEKLA_X_{name.upper()}"

    assert problems(**{variable: text}) == (f"{variable}={problem}",)
    assert problems(f"--{name}={text}") == (f"--{name}={problem}",)


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        config.load(Settings, "HEKLA_X", {"HEKLA_X_THREADS": "x"}, ["--nonsense", "--idle"])

    assert raised.value.problems == (
        "--nonsense is no setting",
        "--idle needs a value",
        "HEKLA_DATABASE_URL (or --database-url) is not set",
        "HEKLA_X_THREADS='x' is not an integer",
    )
    assert str(raised.value) == "; ".join(raised.value.problems)


def test_a_flag_wins_over_its_variable() -> None:
    assert load("--threads=2", HEKLA_X_THREADS="3").threads == 2


def test_a_flag_that_wins_spares_a_variable_that_cannot_be_read() -> None:
    assert load("--threads=2", HEKLA_X_THREADS="x").threads == 2


def test_a_switch_needs_no_value() -> None:
    settings = load("--verbose", "--threads", "3")

    assert settings.verbose
    assert settings.threads == 3
    assert not load("--no-verbose", HEKLA_X_VERBOSE="true").verbose
    assert problems("--no-threads") == ("--no-threads is no setting",)
    assert problems("--no-verbose=true") == ("--no-verbose is no setting",)


def test_an_empty_variable_counts_as_not_set() -> None:
    assert load(HEKLA_X_THREADS="", HEKLA_X_KUBECONFIG="") == load()


def test_variables_that_are_no_settings_are_nobodys_business() -> None:
    assert load(HEKLA_X_PORT="tcp://10.0.0.1:50052") == load()  # as Kubernetes sets them


def test_secrets_are_shown_nowhere() -> None:
    @dataclass(frozen=True, slots=True)
    class Secret:
        pin: int = setting(secret=True)

    settings = load(
        HEKLA_DATABASE_URL="postgresql://me:hunter2@h/db?sslpassword=hunter3",
        HEKLA_X_TOKEN="hunter4",
        HEKLA_X_NAMES="http://u:hunter5@h/",
    )
    with pytest.raises(ConfigError) as raised:
        config.load(Secret, "HEKLA_X", {"HEKLA_X_PIN": "hunter6"})

    assert "hunter" not in str(config.describe(settings)) + str(raised.value)
    assert config.describe(settings)["database_url"] == (
        "postgresql://me:***@h/db?sslpassword=***"
    )


words = st.text(st.characters(exclude_characters="/?#@:&", categories=["L", "N", "P"]))


@given(user=words, password=words.filter(lambda word: len(word) > 6), host=words)
def test_no_password_of_a_url_survives_masking(user: str, password: str, host: str) -> None:
    url = f"postgresql://{user}:{password}@{host}/db"

    masked = config.masked(f"cannot reach {url}")

    assert masked == f"cannot reach postgresql://{user}:***@{host}/db"


def test_a_description_has_plain_values() -> None:
    described = config.describe(load(HEKLA_X_IDLE="90", HEKLA_X_NAMES="a,b"))

    assert described["idle"] == "1m30s"
    assert described["home"] == "/var/hekla"
    assert described["names"] == ["a", "b"]
    assert described["kubeconfig"] is None


def test_help_names_every_setting_with_its_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        config.load(Settings, "HEKLA_X", {}, ["--help"])

    shown = capsys.readouterr().out
    assert exited.value.code == 0
    assert shown.startswith("Settings of a thing.\n")
    assert (
        "  --threads <integer>  (HEKLA_X_THREADS; default 4)\n      How many at once.\n"
        in shown
    )
    assert "  --database-url <text>  (HEKLA_DATABASE_URL; required)\n" in shown
    assert "--runtime <process|simulate>" in shown


@given(
    st.fixed_dictionaries(
        {},
        optional={
            f"HEKLA_X_{name}": st.text(max_size=20)
            for name in ("THREADS", "RATIO", "VERBOSE", "IDLE", "RUNTIME", "COLOUR", "SIZES")
        },
    )
)
def test_any_text_is_read_or_refused_as_a_setting(environ: dict[str, str]) -> None:
    try:
        settings = load(**environ)
    except ConfigError as error:
        named = {problem.partition("=")[0] for problem in error.problems}
    else:
        named = set()
        assert settings.threads >= 1
        assert settings.idle >= timedelta()

    assert named <= set(environ)

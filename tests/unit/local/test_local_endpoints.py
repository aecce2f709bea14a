from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from hekla.client import endpoints
from hekla.domain.errors import InvalidError, PreconditionError, UnavailableError
from hekla.local.stack import plan
from hekla.local.stack.endpoints import (
    FIRST_PORT,
    LAST_PORT,
    Home,
    choose_ports,
    free,
    remembered_ports,
    write_private,
)
from hekla.local.stack.plan import Options


def test_ports_are_free_all_different_and_below_those_of_outgoing_connections(
    tmp_path: Path,
) -> None:
    ports = choose_ports(Home(tmp_path), ["a", "b", "c"], {})

    assert len(set(ports.values())) == 3
    assert all(FIRST_PORT <= port <= LAST_PORT and free(port) for port in ports.values())


def test_ports_are_kept_in_the_endpoints_file(tmp_path: Path) -> None:
    home = Home(tmp_path)
    first = choose_ports(home, ["a", "b"], {})
    write_private(home.endpoints, {"ports": first})

    assert remembered_ports(home) == first
    assert choose_ports(home, ["a", "b", "c"], {}).items() >= first.items()


def test_a_kept_port_that_someone_took_is_replaced(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        write_private(home.endpoints, {"ports": {"a": port}})

        assert choose_ports(home, ["a"], {})["a"] != port


def test_a_port_that_was_asked_for_and_is_in_use_is_an_error_that_names_it(
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(UnavailableError, match=f"port {port} for controller is in use"):
            choose_ports(Home(tmp_path), ["controller"], {"controller": port})


def test_one_port_for_two_things_is_refused(tmp_path: Path) -> None:
    port = next(iter(choose_ports(Home(tmp_path), ["a"], {}).values()))

    with pytest.raises(UnavailableError, match="in use"):
        choose_ports(Home(tmp_path), ["a", "b"], {"a": port, "b": port})


@pytest.mark.parametrize("content", ["", "[]", "{", '{"ports": 3}', '{"ports": {"a": "x"}}'])
def test_a_broken_endpoints_file_means_new_ports(tmp_path: Path, content: str) -> None:
    home = Home(tmp_path)
    home.endpoints.write_text(content)

    assert choose_ports(home, ["a"], {})["a"] >= FIRST_PORT


def test_the_file_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    home = Home(tmp_path)
    write_private(home.endpoints, {"database_url": "postgresql://u:secret@h/d"})

    assert home.endpoints.stat().st_mode & 0o777 == 0o600


def test_a_home_that_is_a_file_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")

    with pytest.raises(PreconditionError, match=r"home.*(in the way|cannot be used)"):
        Home(tmp_path / "home").make()


def test_a_variable_names_a_service_before_the_file_does(tmp_path: Path) -> None:
    environ = {"HEKLA_HOME": str(tmp_path), "HEKLA_CONTROLLER": "10.0.0.1:5"}
    (tmp_path / "endpoints.json").write_text(json.dumps({"controller": "a:1", "flow": "b:2"}))

    assert endpoints.address("controller", environ) == "10.0.0.1:5"
    assert endpoints.address("flow", environ) == "b:2"


def test_an_unknown_service_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"'hekla up'.*HEKLA_CONTROLLER"):
        endpoints.address("controller", {"HEKLA_HOME": str(tmp_path)})


def test_an_endpoints_file_that_is_no_json_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "endpoints.json").write_text("{")

    with pytest.raises(InvalidError, match=r"endpoints.json is not JSON"):
        endpoints.address("controller", {"HEKLA_HOME": str(tmp_path)})


def test_every_service_gets_ports_and_the_addresses_of_those_it_calls(tmp_path: Path) -> None:
    home, options = Home(tmp_path), Options(replicas={"controller": 2})
    ports = {purpose: number for number, purpose in enumerate(plan.purposes(options), 1)}

    units = {spec.name: spec for spec in plan.specs(home, options, ports)}

    assert {"controller", "controller-2", "scheduler", "webhook", "flow", "cluster"} < set(
        units
    )
    both = f"ipv4:127.0.0.1:{ports['controller']},127.0.0.1:{ports['controller-2']}"
    assert units["scheduler"].env["HEKLA_SCHEDULER_CONTROLLER"] == both
    listens = units["controller-2"].env["HEKLA_CONTROLLER_LISTEN"]
    assert listens == f"127.0.0.1:{ports['controller-2']}"
    assert plan.endpoints(home, options, ports)["controller"] == both


def test_the_first_webhook_answers_the_local_cluster(tmp_path: Path) -> None:
    home, options = Home(tmp_path), Options(replicas={"webhook": 2}, crds=True)
    ports = {purpose: number for number, purpose in enumerate(plan.purposes(options), 1)}

    units = {spec.name: spec for spec in plan.specs(home, options, ports)}

    where = f"127.0.0.1:{ports['webhook-https']}"
    assert units["webhook"].env["HEKLA_WEBHOOK_HTTPS_LISTEN"] == where
    assert units["webhook"].env["HEKLA_WEBHOOK_URL"] == f"https://{where}"
    assert "HEKLA_WEBHOOK_HTTPS_LISTEN" not in units["webhook-2"].env
    assert "--crds" in units["cluster"].argv


def test_without_custom_resources_nobody_asks_the_webhook(tmp_path: Path) -> None:
    home, options = Home(tmp_path), Options(crds=False)
    ports = {purpose: number for number, purpose in enumerate(plan.purposes(options), 1)}

    units = {spec.name: spec for spec in plan.specs(home, options, ports)}

    assert "webhook-https" not in ports
    assert "HEKLA_WEBHOOK_HTTPS_LISTEN" not in units["webhook"].env
    assert "--no-crds" in units["cluster"].argv


def test_a_database_of_somebody_elses_is_used_and_shown_to_nobody(tmp_path: Path) -> None:
    url = "postgresql://u:secret@db/hekla"
    options = Options(database_url=url)
    ports = dict.fromkeys(plan.purposes(options), 1)

    units = {spec.name: spec for spec in plan.specs(Home(tmp_path), options, ports)}

    assert "postgres" not in units
    assert units["controller"].env["HEKLA_DATABASE_URL"] == url
    assert not any("secret" in part for spec in units.values() for part in spec.argv)
    with pytest.raises(PreconditionError) as refused:
        plan.refuse_differences({"database_url": None}, {"database_url": url})
    assert "HEKLA_DATABASE_URL" in str(refused.value)
    assert "secret" not in str(refused.value)


def test_options_that_were_not_named_may_be_as_they_are() -> None:
    running = {"nodes": 5, "runtime": "simulate"}

    plan.refuse_differences(running, {"runtime": "simulate"})
    with pytest.raises(PreconditionError, match="--nodes 5, not 3"):
        plan.refuse_differences(running, {"nodes": 3})
    assert plan.merged(running, {"nodes": 7, "unheard": 1}) == Options(
        nodes=7, runtime="simulate"
    )

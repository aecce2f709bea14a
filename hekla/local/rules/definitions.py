"""What a CustomResourceDefinition must be, and what it defines. Pure: values in, values out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from hekla.domain import syntax
from hekla.domain.errors import Violation
from hekla.local.kinds import jsonpath
from hekla.local.kinds.registry import BUILT_IN, Column, Field, Kind, Object
from hekla.local.schemas import schema_rules
from hekla.local.schemas.checks import shown
from hekla.local.schemas.structural import PRESERVE, Structural

CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer that a definition gets when it is deleted: its objects go first."""
_TEXT: Final = {"type": "string"}
_FLAG: Final = {"type": "boolean"}
_ANY: Final = {"type": "object", PRESERVE: True}


def _open(required: Sequence[str] = (), **properties: Any) -> dict[str, Any]:
    return {**_ANY, "required": list(required), "properties": properties}


def _list(items: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


_COLUMN_TYPES: Final = ["boolean", "date", "integer", "number", "string"]
_VERSION: Final = _open(
    ("name", "served", "storage"),
    name=_TEXT,
    served=_FLAG,
    storage=_FLAG,
    schema=_open(),
    subresources=_open(status=_ANY, scale=_ANY),
    additionalPrinterColumns=_list(
        _open(
            ("name", "type", "jsonPath"),
            name=_TEXT,
            type={**_TEXT, "enum": _COLUMN_TYPES},
            jsonPath=_TEXT,
            format=_TEXT,
            description=_TEXT,
            priority={"type": "integer"},
        )
    ),
    selectableFields=_list(_open(("jsonPath",), jsonPath=_TEXT)),
)
_SHAPE: Final = Structural(
    _open(
        ("spec",),
        spec=_open(
            ("group", "names", "scope", "versions"),
            group=_TEXT,
            scope={**_TEXT, "enum": ["Cluster", "Namespaced"]},
            names=_open(
                ("plural", "kind"),
                plural=_TEXT,
                singular=_TEXT,
                kind={**_TEXT, "minLength": 1},
                listKind=_TEXT,
                shortNames=_list(_TEXT),
                categories=_list(_TEXT),
            ),
            versions=_list(_VERSION, minItems=1),
            conversion=_open(strategy={**_TEXT, "enum": ["None"]}),
        ),
    )
)
_BUILT_IN: Final = frozenset(kind.resource for kind in BUILT_IN)


class Defined(NamedTuple):
    """What one definition defines."""

    kept: Kind
    """The version in which objects are kept."""
    served: list[Kind]


def defaults(definition: Object) -> None:
    """Fill in what is absent."""
    spec = definition.get("spec")
    if not isinstance(spec, dict):
        return
    spec.setdefault("conversion", {"strategy": "None"})
    names = spec.get("names")
    if isinstance(names, dict) and isinstance(names.get("kind"), str):
        kind = names["kind"]
        names.setdefault("singular", kind.lower())
        names.setdefault("listKind", f"{kind}List")


def check(definition: Object) -> list[Violation]:
    """All that is wrong with a definition by itself."""
    found = _SHAPE.violations(definition)
    if found:
        return found
    spec = definition["spec"]
    names, group = spec["names"], spec["group"]
    found += _name_errors(names, group)
    wanted = f"{names['plural']}.{group}"
    name = definition["metadata"]["name"]
    if name != wanted:
        why = f'Invalid value: {shown(name)}: must be spec.names.plural+"."+spec.group'
        found.append(Violation("metadata.name", why))
    if wanted in _BUILT_IN:
        found.append(Violation("spec.names.plural", f"Forbidden: {wanted} is built in"))
    versions = spec["versions"]
    if sum(version["storage"] for version in versions) != 1:
        why = "Invalid value: must have exactly one version marked as storage version"
        found.append(Violation("spec.versions", why))
    if len({version["name"] for version in versions}) < len(versions):
        why = "Invalid value: must contain unique version names"
        found.append(Violation("spec.versions", why))
    for index, version in enumerate(versions):
        found += _version_errors(version, f"spec.versions[{index}]")
    return found


def check_update(old: Object, new: Object) -> list[Violation]:
    """All that may not change once a kind is served."""
    found = []
    for path in (("group",), ("scope",), ("names", "plural"), ("names", "kind")):
        before, after = _at(old["spec"], path), _at(new["spec"], path)
        if before != after:
            why = f"Invalid value: {shown(after)}: field is immutable"
            found.append(Violation(f"spec.{'.'.join(path)}", why))
    return found


def warnings(body: bytes) -> list[str]:
    """What the author of a definition should know."""
    if b'"x-kubernetes-validations"' not in body:
        return []
    return ["this cluster does not check the rules in x-kubernetes-validations"]


def first_status(definition: Object) -> Object:
    """The status of a new definition, before anybody looked at its names."""
    kept = [each["name"] for each in definition["spec"]["versions"] if each["storage"]]
    return {
        "acceptedNames": {"kind": "", "plural": ""},
        "conditions": [],
        "storedVersions": kept,
    }


def conflict(names: Object, others: Iterable[Object]) -> tuple[str, str] | None:
    """Which of a definition's names another one of its group has: a reason and a message."""
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        resources |= {other["plural"], other["singular"], *other.get("shortNames", ())}
        kinds |= {other["kind"], other["listKind"]}
    for reason, name, taken in (
        ("PluralConflict", names["plural"], resources),
        ("SingularConflict", names["singular"], resources),
        *(("ShortNamesConflict", each, resources) for each in names.get("shortNames", ())),
        ("KindConflict", names["kind"], kinds),
        ("ListKindConflict", names["listKind"], kinds),
    ):
        if name in taken:
            return reason, f"{shown(name)} is already in use"
    return None


def status(
    definition: Object, conflicting: tuple[str, str] | None, *, deleting: bool, now: str
) -> Object:
    """The status of a definition whose names were looked at."""
    old: Object = definition.get("status", {})
    names = definition["spec"]["names"]
    if conflicting is None:
        wanted = {
            "NamesAccepted": ("True", "NoConflicts", "no conflicts found"),
            "Established": (
                "True",
                "InitialNamesAccepted",
                "the initial names have been accepted",
            ),
        }
    else:
        wanted = {
            "NamesAccepted": ("False", *conflicting),
            "Established": ("False", "NotAccepted", "not all names are accepted"),
        }
    if deleting:
        why = "CustomResource deletion is in progress"
        wanted["Terminating"] = ("True", "InstanceDeletionInProgress", why)
    kept = [each["name"] for each in definition["spec"]["versions"] if each["storage"]]
    known: list[str] = old.get("storedVersions", [])
    return {
        **old,
        "acceptedNames": names if conflicting is None else old.get("acceptedNames", {}),
        "conditions": [
            _condition(old.get("conditions", []), kind, *says, now=now)
            for kind, says in wanted.items()
        ],
        "storedVersions": known + [each for each in kept if each not in known],
    }


def established(definition: Object) -> bool:
    """Whether its kind is served."""
    return any(
        (each["type"], each["status"]) == ("Established", "True")
        for each in definition.get("status", {}).get("conditions", [])
    )


def defined(definition: Object) -> Defined:
    """The kinds that a definition, which is valid, defines."""
    spec = definition["spec"]
    kinds = [(version, _kind(spec, version)) for version in spec["versions"]]
    [kept] = [kind for version, kind in kinds if version["storage"]]
    return Defined(kept, [kind for version, kind in kinds if version["served"]])


def _kind(spec: Object, version: Object) -> Kind:
    names = spec["names"]
    selectable = [each["jsonPath"].lstrip(".") for each in version.get("selectableFields", [])]
    return Kind(
        spec["group"],
        version["name"],
        names["plural"],
        names["kind"],
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames", ())),
        categories=tuple(names.get("categories", ())),
        singular=names["singular"],
        list_name=names["listKind"],
        status="status" in version.get("subresources", {}),
        generation=True,
        needs_version=True,
        fields={path: Field(tuple(path.split("."))) for path in selectable},
        schema=Structural(version["schema"]["openAPIV3Schema"]),
        columns=tuple(
            Column(
                each["name"],
                each["type"],
                each["jsonPath"],
                each.get("format", ""),
                each.get("description", ""),
                each.get("priority", 0),
            )
            for each in version.get("additionalPrinterColumns", [])
        ),
    )


def _name_errors(names: Object, group: str) -> Iterable[Violation]:
    wrong = syntax.subdomain_error(group) or (
        None if "." in group else "should be a domain with at least one dot"
    )
    if wrong:
        yield Violation("spec.group", f"Invalid value: {shown(group)}: {wrong}")
    short = [(f"shortNames[{at}]", each) for at, each in enumerate(names.get("shortNames", []))]
    for key, text in (
        ("plural", names["plural"]),
        ("singular", names.get("singular", "x")),
        ("kind", names["kind"].lower()),
        ("listKind", names.get("listKind", "x").lower()),
        *short,
    ):
        wrong = syntax.label_error(text)
        if wrong:
            yield Violation(f"spec.names.{key}", f"Invalid value: {shown(text)}: {wrong}")
    if names["kind"] == names.get("listKind"):
        why = f"Invalid value: {shown(names['kind'])}: kind and listKind may not be the same"
        yield Violation("spec.names.listKind", why)


def _version_errors(version: Object, path: str) -> list[Violation]:
    found = []
    wrong = syntax.label_error(version["name"])
    if wrong:
        why = f"Invalid value: {shown(version['name'])}: {wrong}"
        found.append(Violation(f"{path}.name", why))
    if "scale" in version.get("subresources", {}):
        why = "Forbidden: this cluster serves no scale subresource"
        found.append(Violation(f"{path}.subresources.scale", why))
    for index, column in enumerate(version.get("additionalPrinterColumns", [])):
        try:
            jsonpath.compiled(column["jsonPath"])
        except ValueError as error:
            why = f"Invalid value: {shown(column['jsonPath'])}: {error}"
            at = f"{path}.additionalPrinterColumns[{index}].jsonPath"
            found.append(Violation(at, why))
    at = f"{path}.schema.openAPIV3Schema"
    schema = version.get("schema", {}).get("openAPIV3Schema")
    if schema is None:
        return [*found, Violation(at, "Required value: schemas are required")]
    return found + schema_rules.errors_of(schema, at)


def _condition(old: Sequence[Object], *says: str, now: str) -> Object:
    kind, value, reason, message = says
    since = [
        each["lastTransitionTime"]
        for each in old
        if (each["type"], each["status"]) == (kind, value)
    ]
    return {
        "type": kind,
        "status": value,
        "reason": reason,
        "message": message,
        "lastTransitionTime": since[0] if since else now,
    }


def _at(value: Object, path: Sequence[str]) -> Any:
    for step in path:
        value = value.get(step, {})
    return value

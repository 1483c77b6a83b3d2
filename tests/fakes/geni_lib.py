"""As much of geni-lib's portal as ``profile.py`` uses, with its names and arguments.

Reference: geni-lib, ``geni/portal.py`` and ``geni/rspec/pg.py``.
"""

from __future__ import annotations

import types
from dataclasses import dataclass, field
from typing import Any

PARAMETER_TYPES = (
    "INTEGER",
    "STRING",
    "BOOLEAN",
    "IMAGE",
    "AGGREGATE",
    "NODETYPE",
    "BANDWIDTH",
    "LATENCY",
    "SIZE",
    "PUBKEY",
)


class ParameterError(Exception):
    def __init__(self, message: str, params: list[str]) -> None:
        super().__init__(message)
        self.params = params


@dataclass
class Execute:
    shell: str
    command: str


@dataclass
class RawPC:
    name: str
    component_id: str | None = None
    hardware_type: str | None = None
    disk_image: str | None = None
    services: list[Execute] = field(default_factory=list)

    def addService(self, service: Execute) -> None:  # noqa: N802 - geni-lib's
        self.services.append(service)


@dataclass
class Request:
    nodes: list[RawPC] = field(default_factory=list)

    def RawPC(self, name: str, component_id: str | None = None) -> RawPC:  # noqa: N802 - geni-lib's
        self.nodes.append(RawPC(name, component_id))
        return self.nodes[-1]


class Portal:
    """Parameters and requests of a profile.

    Attributes:
        parameters: that it defines, by name.
        errors: that it has reported.
        printed: the request that it has printed.
    """

    def __init__(self, **chosen: str) -> None:
        self._chosen = chosen
        self._request: Request | None = None
        self.parameters: dict[str, dict[str, Any]] = {}
        self.errors: list[ParameterError] = []
        self.warnings: list[ParameterError] = []
        self.printed: Request | None = None

    def modules(self) -> dict[str, types.ModuleType]:
        """By the names under which they are imported."""
        geni, portal, rspec, pg = map(types.ModuleType, ("geni", "geni.portal", "geni.rspec", "geni.rspec.pg"))
        geni.portal, geni.rspec, rspec.pg = portal, rspec, pg  # type: ignore[attr-defined]
        portal.Context = lambda: self  # type: ignore[attr-defined]
        portal.ParameterError = ParameterError  # type: ignore[attr-defined]
        portal.ParameterType = types.SimpleNamespace(**{name: name.lower() for name in PARAMETER_TYPES})  # type: ignore[attr-defined]
        pg.Execute = Execute  # type: ignore[attr-defined]
        return {module.__name__: module for module in (geni, portal, rspec, pg)}

    def defineParameter(  # noqa: N802 - geni-lib's
        self,
        name: str,
        description: str,
        typ: str,
        defaultValue: Any,  # noqa: N803
        legalValues: Any = None,  # noqa: N803
        longDescription: str | None = None,  # noqa: N803
        advanced: bool = False,
        groupId: str | None = None,  # noqa: N803
        hide: bool = False,
        prefix: str = "emulab.net.parameter.",
    ) -> None:
        self.parameters[name] = {"description": description, "type": typ, "default": defaultValue}

    def bindParameters(self) -> types.SimpleNamespace:  # noqa: N802 - geni-lib's
        assert self._chosen.keys() <= self.parameters.keys()
        return types.SimpleNamespace(
            **{name: self._chosen.get(name, it["default"]) for name, it in self.parameters.items()}
        )

    def reportError(self, error: ParameterError, immediate: bool = False) -> None:  # noqa: N802 - geni-lib's
        self.errors.append(error)

    def reportWarning(self, error: ParameterError) -> None:  # noqa: N802 - geni-lib's
        self.warnings.append(error)

    def verifyParameters(self) -> None:  # noqa: N802 - geni-lib's
        if self.errors:
            raise SystemExit(100 + len(self.errors))

    def makeRequestRSpec(self) -> Request:  # noqa: N802 - geni-lib's
        self._request = Request()
        return self._request

    def printRequestRSpec(self, rspec: Request | None = None) -> None:  # noqa: N802 - geni-lib's
        self.printed = rspec or self._request

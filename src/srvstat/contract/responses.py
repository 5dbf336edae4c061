"""Define the responses, with fields in the order of the specification's tables (section 2)."""

from collections.abc import Sequence
from typing import Annotated, Literal, get_args

from pydantic import ConfigDict, Field, WithJsonSchema
from pydantic.alias_generators import to_camel

from srvstat.contract import wire
from srvstat.contract.errors import ApiError, ErrorCode
from srvstat.contract.models import ContractModel
from srvstat.contract.requests import MAX_SERVERS, MIN_SERVERS
from srvstat.contract.stats import Statistics
from srvstat.contract.windows import Range

Game = Literal["game_a", "game_b"]
GAMES: tuple[str, ...] = get_args(Game)

# Our values are integers (D5, D6). The published schema says number, as the specification does.
CountOrNull = Annotated[int | None, WithJsonSchema({"type": ["number", "null"]})]

# Client generators fail on `"type": "null"` (docs/how-to/generate-a-client.md).
AlwaysNull = Annotated[None, WithJsonSchema({"type": ["number", "null"], "const": None})]

# Only for the published schema. `format_instant` writes all values, so they are not validated (D4).
Instant = Annotated[
    str,
    Field(
        json_schema_extra={
            "format": "date-time",
            "pattern": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$",
        }
    ),
]


class ResponsePart(ContractModel):
    """A response or a part of a response. JSON names are in camel case, as in the API."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=False,
        serialize_by_alias=True,
    )

    @classmethod
    def list_members(cls) -> list[str]:
        """Return the JSON names of the fields, in order."""
        return list(map(to_camel, cls.model_fields))


class Response(ResponsePart):
    """The body of an HTTP response."""

    def to_json(self) -> bytes:
        """Return the exact bytes of the response, without a newline."""
        return wire.encode(self.model_dump())


class GrowthFields(ResponsePart):
    """The last observation minus the first, in players and as a percentage of the first."""

    players: CountOrNull
    percentage: float | None


class ServerResult(ResponsePart):
    """The statistics of one server over one range, in players."""

    server_id: str
    cfx_id: str
    range: Range
    current_players: int
    average_players: float | None
    median_players: float | None
    peak_players: CountOrNull
    lowest_players: CountOrNull
    growth: GrowthFields
    uptime: AlwaysNull = None
    sample_count: Annotated[int, Field(ge=0)]

    def encode_once(self) -> wire.EncodedJson:
        """Return this result as JSON that `encode_comparison` copies unchanged."""
        return wire.encode_once(self.model_dump())


def build_result(
    server_id: str, cfx_id: str, current_players: int, range: Range, figures: Statistics
) -> ServerResult:
    """Return the result of one server (specification, section 2.4)."""
    return ServerResult(
        server_id=server_id,
        cfx_id=cfx_id,
        range=range,
        current_players=current_players,
        average_players=figures.mean,
        median_players=figures.median,
        peak_players=figures.peak,
        lowest_players=figures.lowest,
        growth=GrowthFields(players=figures.growth.players, percentage=figures.growth.percentage),
        sample_count=figures.observations,
    )


class CompareResponse(Response):
    """The response of Compare Servers.

    - `range`: the range of the request.
    - `data`: one ServerResult per server, in request order.
    """

    range: Range
    data: Annotated[tuple[ServerResult, ...], Field(min_length=MIN_SERVERS, max_length=MAX_SERVERS)]

    def to_json(self) -> bytes:
        """Return the exact bytes of the response, without a newline."""
        return encode_comparison(self.range, [result.encode_once() for result in self.data])


def encode_comparison(range: Range, results: Sequence[wire.EncodedJson]) -> bytes:
    """Return the bytes of a CompareResponse whose results are already encoded."""
    return wire.encode({"range": range, "data": results})


class Players(ResponsePart):
    """The current and the maximum number of players."""

    current: int
    max: int


class ServerDetail(ResponsePart):
    """The public details of one server. Times are UTC with milliseconds."""

    id: str
    game: Game
    cfx_id: str
    hostname: str
    project_name: str
    project_description: str
    region: str
    players: Players
    tags: tuple[str, ...]
    flags: tuple[str, ...]
    chat_url: str
    icon_url: str | None
    offline: bool
    first_seen_at: Instant
    updated_at: Instant


class ServerResponse(Response):
    """The response of Get Server.

    - `data`: the ServerDetail of the server.
    """

    data: ServerDetail


HealthStatus = Literal["ok", "outdated"]
"""`outdated`: responses are correct, but a newer file at the snapshot's path can't be used."""


class HealthResponse(Response):
    """The response of the health and readiness checks, which the API does not define."""

    status: HealthStatus = "ok"
    as_of: Instant
    root: Annotated[str, Field(json_schema_extra={"pattern": "^[0-9a-f]{64}$"})]


class UnavailableResponse(Response):
    """The response of the readiness check while the service is not ready."""

    status: Literal["unavailable"] = "unavailable"


class ErrorFields(ResponsePart):
    """The published fields of an error."""

    code: ErrorCode
    message: str


class ErrorResponse(Response):
    """The response for every error (section 7)."""

    error: ErrorFields

    @classmethod
    def from_error(cls, error: ApiError | type[ApiError]) -> "ErrorResponse":
        """Return the published response of an error, without its reason."""
        return cls(error=ErrorFields(code=error.code, message=error.message))

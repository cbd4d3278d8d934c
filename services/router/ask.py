"""A request after the entrance: checked, with its tenant, budget and contract."""

from __future__ import annotations

from dataclasses import dataclass, field

from services.common.contract import AnswerCheck
from services.common.deadline import Budget
from services.common.vocabulary import StreamMode
from services.router.embed_text import TextVector
from services.router.experiment import Arm
from services.router.policy_store import VersionedPolicy
from services.router.tenants import Tenant
from tandem.router.v1 import router_pb2


@dataclass(frozen=True, slots=True)
class Ask:
    """What the pipeline works on.

    Attributes:
        request: The message as it came; its text fields are never copied or logged.
        task_type: As given or recognized.
        mode: Stream mode in force for this request.
        check: Whether an answer keeps the output contract.
        free_text: No contract beyond text that is not empty.
        arm: Of an A/B test.
        candidate: A policy that is only recorded (dry run).
        caller_key: Id of the caller's key, for the proxy's limits per key.
        vector: The conversation's sentence vector, made when first asked for.
    """

    request: router_pb2.RouteRequest
    request_id: str
    tenant: Tenant
    channel: str
    session_id: str
    budget: Budget
    task_type: str
    mode: StreamMode
    check: AnswerCheck
    free_text: bool
    caller_key: str = ""
    arm: Arm = ""
    candidate: VersionedPolicy | None = None
    vector: TextVector = field(default_factory=lambda: TextVector("", None))

"""Every span, attribute and metric name, in one place.

Ours start with `tandem.`; the others follow the OpenTelemetry RPC and GenAI
conventions (`gen_ai.provider.name` replaced `gen_ai.system`, so the strings are
kept here and not taken from a package that lags behind).
"""

from __future__ import annotations

# Spans inside a service (RPC spans are named by their method).
SPAN_SCREEN = "tandem.screen"
SPAN_DECIDE = "tandem.decide"
SPAN_ATTEMPT = "tandem.attempt"
SPAN_EDGE_QUEUE = "tandem.edge.queue"
SPAN_EDGE_PREFILL = "tandem.edge.prefill"
SPAN_EDGE_DECODE = "tandem.edge.decode"
SPAN_REDACT = "tandem.proxy.redact"
SPAN_UPSTREAM = "tandem.proxy.upstream"

# Attributes.
REQUEST_ID = "tandem.request_id"
TENANT = "tandem.tenant"
LEVEL = "tandem.level"
TARGET = "tandem.target"
REASON = "tandem.reason"
FALLBACK_TYPE = "tandem.fallback_type"
OUTCOME = "tandem.outcome"
TASK_TYPE = "tandem.task_type"
POLICY_VERSION = "tandem.policy_version"
CAP_MS = "tandem.cap_ms"
ERROR_REASON = "tandem.error_reason"
LANE = "tandem.lane"
PII_TYPES = "tandem.pii_types"
DEADLINE_MS = "tandem.deadline_ms"
ELAPSED_MS = "tandem.elapsed_ms"
STANDIN = "tandem.standin"
BREAKER_STATE = "tandem.breaker_state"
RPC_SYSTEM = "rpc.system"
RPC_SERVICE = "rpc.service"
RPC_METHOD = "rpc.method"
RPC_STATUS = "rpc.grpc.status_code"
GEN_AI_OPERATION = "gen_ai.operation.name"
GEN_AI_PROVIDER = "gen_ai.provider.name"
GEN_AI_REQUEST_MODEL = "gen_ai.request.model"
GEN_AI_RESPONSE_MODEL = "gen_ai.response.model"
GEN_AI_INPUT_TOKENS = "gen_ai.usage.input_tokens"
GEN_AI_OUTPUT_TOKENS = "gen_ai.usage.output_tokens"

# Metrics.
LOOP_LAG = "tandem.loop.lag"
SERVER_DURATION = "rpc.server.duration"
BREAKER_CHANGES = "tandem.breaker.changes"
POLICY_RELOADS = "tandem.policy.reloads"
REQUESTS = "tandem.requests"
LEDGER_ENTRIES = "tandem.ledger.entries"
ATTEMPTS = "tandem.attempts"
DEADLINE_OVERRUN = "tandem.deadline.overrun"
TTFT = "tandem.ttft"
EDGE_STEP_ROWS = "tandem.edge.step.rows"
EDGE_TTFT = "tandem.edge.ttft"
EDGE_TOKENS = "tandem.edge.tokens"
UPSTREAM_CALLS = "tandem.upstream.calls"
UPSTREAM_COST = "tandem.upstream.cost"
LIMIT_REFUSALS = "tandem.limits.refusals"
LIMIT_STORE_DOWN = "tandem.limits.store_down"
FILE_RELOADS = "tandem.file.reloads"

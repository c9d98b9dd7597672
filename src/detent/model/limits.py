"""Everything has a limit, and each limit has one name, here."""

from __future__ import annotations

# definitions
BLOCK_DEPTH = 64
BLOCKS_TOTAL = 5_000
BRANCHES = 256
LOOP_ITERATIONS = 100_000
DEFINITION_BYTES = 4 * 1024 * 1024
DEFINITION_FAULTS = 200
DEFINITION_NESTING = 400  # lists and objects within one another; 64 blocks take up to 256
DEFINITION_NODES = 500_000  # values in one definition, aliases expanded
SUB_SEQUENCE_DEPTH = 16
NAME_CHARS = 255
RATE_LIMIT_KEYS = 8  # of one step
SEND_WINDOWS = 8  # of one step
WINDOW_SPANS = 48  # of one weekday
HOLIDAYS_FIRST_YEAR = 2020  # of a country, pinned by the version of a definition
HOLIDAYS_LAST_YEAR = 2040

# calendars
CALENDAR_HORIZON_DAYS = 1_827  # five years: how far an opening or a closing is looked for
CRON_CHARS = 256
CRON_HORIZON_YEARS = 50  # a 29 February on a given weekday is up to 40 years away
COUNTRY_YEARS = 100  # of a country's holidays in one call

# expressions and templates
EXPRESSION_CHARS = 8_192
EXPRESSION_DEPTH = 32
EXPRESSION_OPERATIONS = 100_000
TEMPLATE_RESULT_BYTES = 4 * 1024 * 1024

# payloads
CONTEXT_BYTES = 262_144
PAYLOAD_BYTES = 4 * 1024 * 1024
PAYLOAD_DEPTH = 100
INTEGER_BITS = 64
BLOB_BYTES = 32 * 1024
MESSAGE_CHARS = 2_000  # of a failure's text; what is longer is cut

# instances
SIGNALS_KEPT = 1_000
MOVES_PER_TURN = 1_000
CACHE_ENTRIES = 1_000
KEY_CHARS = 512
DURATION_MS = 100 * 366 * 86_400_000

RESOLUTION_MS = 60_000

# turns
INSTANCES_PER_TURN = 500
TURN_BUDGET_MS = 20
TENANT_QUANTUM = 4  # instances of a tenant that move in a row while another tenant waits
DUE_STRETCHES = 4_096  # tenants of a priority with a backlog that is read at once; the rest follow
BATCH_STARTS = 10_000

# effects
EFFECT_DEADLINE_MS = 3_600_000
DEADLINE_GRACE_MS = 10_000
CRASHES_PER_EFFECT = 5
RECONCILE_ATTEMPTS = 5
RECONCILE_BACKOFF_MS = 10_000
RECONCILE_BACKOFF_MAX_MS = 600_000

# schedules
CRON_MISSED = 10  # missed fires carried out by the policy "all", unless the schedule says otherwise
CRON_MISSED_MOST = 100
CRON_LATE_MS = 5_000  # a fire that is later than this is missed for the policy "none"
CRON_COUNTED = 1_000  # missed fires that are counted one by one after a stand-still
CRON_TRACKED = 100  # instances of one schedule whose end it waits for; the newest ones
CRON_PREVIEW = 50
CRONS_LISTED = 1_000

# a tenant's gate
LIMITS_PER_TENANT = 10_000
LIMIT_MAX = 1_000_000  # permits of one window: the gate remembers the instant of each
LIMIT_WINDOW_MS = 366 * 86_400_000
RETRY_AFTER_MS = 366 * 86_400_000  # how long a handler can close what its step used
POOLS_PER_TENANT = 1_000
RESOURCES_PER_POOL = 1_000
RESOURCES_PER_TENANT = 10_000
RESOURCE_WEIGHT = 1_000
DAILY_CAP = 1_000_000_000
WARMUP_DAYS = 366

# store
LEASE_TTL_MS = 30_000
LEASE_RETRY_MS = 1_000
LEASE_MARGIN_MS = 2_000
DEDUPE_WINDOW_MS = 7 * 86_400_000
PARTITIONS = 16
PARTITIONS_MOST = 1_024
SEAL_EVERY_TURNS = 1_000
KEY_FILE_BYTES = 16 * 1024
ASK_TIMEOUT_MS = 30_000
MAX_CLOCK_JUMP_MS = 7 * 86_400_000

# dispatcher
IN_FLIGHT = 1_000  # calls of async handlers at once; the rest wait in order
POOL_THREADS = 32  # plain functions running at once
POOL_STUCK = 32  # further threads, standing in for calls that outlived their timeout
CLOSE_GRACE_MS = 5_000
POLICY_TIMEOUT_MS = 10_000

# link between the writer's process and the rest
FRAME_BYTES = 64 * 1024 * 1024  # aimed at; one larger message still travels alone
WRITER_START_MS = 60_000
WRITER_STOP_MS = 30_000
WRITER_MIN_LIFE_MS = 10_000  # one that died younger is not started again

# views and proofs
TREE_NODES = 20_000
ITERATIONS_SHOWN = 1_000  # of one loop in the tree, where it names no number of its own
ENTRIES_COMPARED = 2_000  # aligned one by one in a what-if; more are told apart as two blocks
WHAT_IF_STEPS = 10_000
VERIFY_PAGE = 1_000  # journal rows at once; larger pages leave the cache and are slower

# concurrency keys
CONCURRENCY = 1_000_000

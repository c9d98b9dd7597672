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
PLAN_STEPS = 500
PLAN_EXITS = 50
PLAN_CONDITIONS = 100  # of one branch
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
EXTENSIONS_KEPT = 100  # programs with injected blocks that are kept compiled, per definition
INJECTED_BYTES = 1024 * 1024  # all blocks put into one instance
BUDGET_MOST = 2**53  # of a budget's numbers
BULK_INSTANCES = 10_000
BULK_DEFAULT = 1_000
BULK_AT_ONCE = 500  # asked together; the rest follow
BULK_REACH = 100_000  # instances that a bulk action without a limit of its own may find
DEAD_LETTERS_GROUPED = 10_000  # the newest
AUDIT_SHOWN = 100  # journal entries in an instance's context, the newest
SESSION_CHARS = 512
KEY_CHARS = 512
CONTACT_CHARS = 240  # of the id of a contact
RUNS_LISTED = 500  # runs of plans in one page
PREVIEW_STEPS = 1_000  # of a plan that is only tried out
LABELS = 32  # texts of the metadata that lists can be filtered by
DURATION_MS = 100 * 366 * 86_400_000

RESOLUTION_MS = 60_000

# the server's catalogue
RECORD_TRIES = 100  # of a change that others make at the same time
LIST_MOST = 1_000
CREDENTIALS_PER_TENANT = 10_000
CREDENTIAL_BYTES = 256 * 1024
DESCRIPTION_CHARS = 2_000
SECRETS_PER_STEP = 100  # credentials that the params of one step name
SECRET_CHARS = 4  # a shorter text is only taken for the secret where it stands alone
REFRESH_BEFORE_MS = 300_000  # how long before it expires a token is refreshed
REFRESH_AGAIN_MS = 60_000  # until the next try of a refresh that failed, or was lost
REFRESH_LOOK_MS = 60_000  # how often a server looks for tokens to refresh
REFRESH_TIMEOUT_MS = 30_000  # how long a provider may take to give a new token
REFRESH_AT_ONCE = 8  # tokens that steps of one process have refreshed
REFRESH_WAIT_MS = 10_000  # how long a step waits for a refresh that another process makes
REFRESH_BYTES = 64 * 1024  # of an answer to a refresh
RESEAL_BATCH = 500  # records that are sealed again in one transaction
VAULT_KEYS = 16  # the one that seals, and older ones
API_KEYS_PER_TENANT = 1_000
API_KEY_USE_MS = 60_000  # how often at most the last use of a key is written
API_KEYS_TRACKED = 10_000
API_KEY_FRESH_MS = 5_000  # how long a key that was let in is not looked up again
REQUEST_KEY_CHARS = 255  # of an Idempotency-Key
REQUEST_ANSWER_BYTES = 64 * 1024  # of an answer kept under one
REQUEST_KEPT_MS = 86_400_000  # how long it is kept
REQUESTS_PRUNED = 10  # kept answers that are looked at for removal with each new one
TRIGGERS_PER_TENANT = 10_000
TRIGGER_CONFIG_BYTES = 64 * 1024
WEBHOOK_BYTES = 1024 * 1024
WEBHOOK_OLD_S = 300  # how far in the past the timestamp of a signed call may lie
WEBHOOK_EARLY_S = 60
WEBHOOK_NONCE_LEAST = 16
WEBHOOK_NONCE_MOST = 128
WEBHOOK_PRUNED = 10  # nonces that are looked at for removal with each new one
WEBHOOKS_PER_SECOND = 300  # of one peer to one trigger
WEBHOOK_PEERS = 10_000  # counted at once
SESSION_KEY_CHARS = 512
SESSION_INSTANCES = 10_000
CHECKPOINT_BYTES = 256 * 1024
CHECKPOINTS_PER_INSTANCE = 10_000
CHECKPOINTS_LISTED = 100

# streams of the server
STREAMS = 256  # open at once
STREAM_ROWS = 500  # journal rows of one look
STREAM_LOOK_BYTES = 256 * 1024  # shown by one look; one larger output still goes alone
STREAM_POLL_LEAST_MS = 100
STREAM_POLL_MOST_MS = 5_000
STREAM_GAP_MS = 50  # between two looks of one stream, however much moves
STREAM_BEAT_MS = 15_000  # of silence before a comment says that the stream is alive
STREAM_STALL_MS = 60_000  # a reader that takes nothing for so long is dropped
STREAM_DELTAS = 1_000  # pieces of a model's text that wait for a slow reader; the oldest go
PLACE_DIGITS = 18  # of a position that a client gives back
QUEUE_CHARS = 200  # of a queue that is pushed: its worker is named after it
FLEET_PER_TENANT = 1_000  # routing rules; version pins; push targets; commands of workers
USAGE_INSTANCES = 10_000  # counted by one call
CHANGES_LISTED = 500
CHANGES_SCANNED = 5_000  # journal rows of a tenant that one page looks at

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

# the network
URL_CHARS = 8_192
REDIRECTS = 5
RESPONSE_BYTES = 10 * 1024 * 1024  # of a body, unpacked
HEADERS = 100  # of a request
HEADER_BYTES = 32 * 1024  # of all headers of a request
CONNECT_TIMEOUT_MS = 10_000  # each of: asking for addresses, connecting, the TLS handshake
CALL_TIMEOUT_MS = 3_600_000
ADDRESSES_TRIED = 4  # of one host, until one of them answers
CONNECTIONS = 1_000  # at once; as many as calls of async handlers
CONNECTIONS_KEPT = 50  # idle ones, ready for the next call
CONNECTION_KEPT_MS = 30_000
FAILURE_BODY_CHARS = 16_384  # of an answer that is kept in a failure's details
SERVER_RETRY_AFTER_MS = 86_400_000  # what a server can make a tenant wait

# language models
PROVIDERS = 16  # of one call, tried in order
REPAIR_ATTEMPTS = 5
STREAM_EVENT_CHARS = 1024 * 1024  # of one event in a model's stream

# external workers
WORK_STALE_MS = 60_000  # a claim without a heartbeat for this long goes to somebody else
WORK_POLLED = 1_000  # items of one poll
WORK_LISTED = 1_000
WORK_EVENTS = 1_000  # lines in the history of one item; what comes later is not written down
WORK_REAPED = 500  # items whose lease is over, dealt with at once
REAPER_PAUSE_MS = 100  # between two looks at claims, however many end
PUSHES_AT_ONCE = 16  # tasks on their way to one target
PUSHES_IN_ALL = 128
PUSH_TIMEOUT_MS = 10_000  # within which a receiver must answer
PUSH_ANSWER_BYTES = 5 * 1024 * 1024
PUSH_BACKOFF_MS = 500  # before a task is pushed again; each further time twice as long
PUSH_BACKOFF_MAX_MS = 300_000
PUSH_LOOK_MS = 30_000  # how often a server looks for what nobody told it of
WORKER_CALLS = 10_000  # that one worker makes at once
WORK_WAIT_S = 30  # how long a poll may wait for work
WORK_SECRETS_KEPT = 10_000  # tasks whose secrets are remembered, to be hidden in their reports
WORK_LOG_LINES = 500  # of one report; what is more is left out
WORKER_NOTED_MS = 5_000  # that a worker was seen is written down no more often
WORKERS_LISTED = 10_000  # things that workers polled for

# schedules
CRON_MISSED = 10  # missed fires carried out by the policy "all", unless the schedule says otherwise
CRON_MISSED_MOST = 100
CRON_LATE_MS = 5_000  # a fire that is later than this is missed for the policy "none"
CRON_COUNTED = 1_000  # missed fires that are counted one by one after a stand-still
CRON_TRACKED = 100  # instances of one schedule whose end it waits for; the newest ones
CRON_PREVIEW = 50
CRONS_LISTED = 1_000

# outbound webhooks
WEBHOOK_URLS = 32
WEBHOOK_URL_CHARS = 2_048
WEBHOOK_SECRETS = 8  # of one URL; more than one while a key is rotated
WEBHOOK_RETRIES = 3  # unless the settings say otherwise
WEBHOOK_RETRIES_MOST = 99
WEBHOOK_BACKOFF_MS = 500  # before the first retry; each further one waits twice as long
WEBHOOK_BACKOFF_MAX_MS = 3_600_000
WEBHOOK_RETRY_AFTER_MS = 86_400_000  # the longest pause that a receiver can ask for
WEBHOOK_TIMEOUT_MS = 10_000
WEBHOOK_TOLERANCE_S = 300  # how old or early a signed timestamp may be when it is verified
WEBHOOK_EXCERPT_CHARS = 500  # of a receiver's answer, kept with the failure
WEBHOOKS_LISTED = 1_000
WEBHOOK_REDELIVER_MS = 15_000  # how long a caller waits for the end of a delivery tried again

# events
EVENT_BATCH = 100
EVENT_BYTES = 262_144  # of one payload
EVENT_NAMES = 32  # that one step waits for
EVENT_COUNT = 1_000  # that one step waits for
EVENTS_KEPT = 1_000  # of one correlation key
EVENTS_KEPT_BYTES = 4 * 1024 * 1024  # their payloads together
EVENT_WAITS = 1_000  # of one correlation key
EVENT_TTL_MS = 7 * 86_400_000  # how long an event waits to be matched
EVENT_REMEMBERED_MS = 14 * 86_400_000  # how long it is known by its producer's id, and listed
EVENTS_LISTED = 1_000

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
BREAKER_THRESHOLD = 5  # failures in a row
BREAKER_THRESHOLD_MOST = 1_000_000
BREAKER_COOLDOWN_MS = 60_000
BREAKER_COOLDOWN_MOST_MS = 366 * 86_400_000
BREAKERS_PER_TENANT = 1_000  # handlers that failed once; the healthiest is forgotten first
BREAKERS_LISTED = 10_000

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
IDS_AT_ONCE = 100  # in the query of one request
LONG_POLL_MS = 20_000  # a request that waits for a state is answered by then
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

# client
CLIENT_TIMEOUT_MS = 40_000  # longer than an engine takes to say that it cannot answer
CLIENT_ATTEMPTS = 5  # of a request that cannot have been carried out twice
CLIENT_BACKOFF_MS = 100  # before the second attempt; doubled before each further one
CLIENT_BACKOFF_MOST_MS = 5_000
CLIENT_CONNECTIONS = 100  # kept by one client, also where many tasks use it at once
CLIENT_SEQUENCES = 1_000  # whose ids a client remembers

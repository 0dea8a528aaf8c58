// Every setting of the server, as data. Names, units, contexts and defaults are Postgres's where
// Postgres has the setting.
//
// X(name, type, context, unit, default, min, max, choices, reported, group, description)
//   context: kInternal (never set), kPostmaster (at start only), kSighup (by reload), kUser (by
//   anyone)
//   choices: of kEnum, separated by '|'
//   reported: told to the client by ParameterStatus when it changes
#pragma once

// clang-format off
#define SLUICE_SETTINGS(X) \
  /* --- connections --- */ \
  X("listen_addresses", kString, kPostmaster, "", "localhost", 0, 0, "", false, "Connections", \
    "Host names or addresses to listen on; nothing beyond loopback unless said here.") \
  X("port", kInt, kPostmaster, "", "5432", 1, 65535, "", false, "Connections", \
    "The TCP port, and the number in the unix socket's name.") \
  X("unix_socket_directories", kString, kPostmaster, "", "/tmp", 0, 0, "", false, "Connections", \
    "Directories where unix sockets are made, separated by commas; empty: none.") \
  X("max_connections", kInt, kPostmaster, "", "100", 1, 10000, "", false, "Connections", \
    "Clients that may be connected at once.") \
  X("authentication_timeout", kInt, kSighup, "s", "60", 1, 600, "", false, "Connections", \
    "Time that a client may take to complete its start-up.") \
  X("ssl", kBool, kSighup, "", "off", 0, 0, "", false, "Connections", \
    "Offers TLS to clients.") \
  X("ssl_cert_file", kString, kSighup, "", "server.crt", 0, 0, "", false, "Connections", \
    "The server's certificate chain; relative to the data directory.") \
  X("ssl_key_file", kString, kSighup, "", "server.key", 0, 0, "", false, "Connections", \
    "The server's private key; relative to the data directory.") \
  X("ssl_ca_file", kString, kSighup, "", "", 0, 0, "", false, "Connections", \
    "Certificates that client certificates must descend from; empty: none are asked for.") \
  X("ssl_min_protocol_version", kEnum, kSighup, "", "TLSv1.2", 0, 0, "TLSv1.2|TLSv1.3", false, \
    "Connections", "The oldest TLS version that is spoken.") \
  X("hba_file", kString, kPostmaster, "", "pg_hba.conf", 0, 0, "", false, "Connections", \
    "Who may connect from where and how; relative to the data directory.") \
  X("database_names", kString, kSighup, "", "postgres", 0, 0, "", false, "Connections", \
    "Names under which clients may ask for the one database, separated by commas.") \
  X("tcp_keepalives_idle", kInt, kUser, "s", "0", 0, 2147483647, "", false, "Connections", \
    "Idle time before a TCP keepalive is sent; 0: the system's default.") \
  X("client_connection_check_interval", kInt, kUser, "ms", "1000", 0, 2147483647, "", false, \
    "Connections", "How often a running query looks whether its client is still there; 0: never.") \
  /* --- resources --- */ \
  X("chunk_size", kInt, kPostmaster, "B", "131072", 512, 16777216, "", false, "Resources", \
    "Size of a chunk, the unit in which rows are received and handed on.") \
  X("chunk_pool_size", kInt, kPostmaster, "kB", "262144", 64, 1073741824, "", false, "Resources", \
    "Memory for all chunks together.") \
  X("shared_reserve", kInt, kPostmaster, "kB", "67108864", 65536, 1073741824, "", false, \
    "Resources", \
    "Address range reserved for plans, hash tables and oversized rows; " \
    "memory is used only where touched.") \
  X("work_mem", kInt, kUser, "kB", "65536", 64, 2147483647, "", false, "Resources", \
    "Memory of one sort, hash join or hash aggregate before it spills to disk.") \
  X("temp_directory", kString, kSighup, "", "", 0, 0, "", false, "Resources", \
    "Where spilled rows go; empty: the folder tmp of the data directory.") \
  X("chunks_per_stream", kInt, kUser, "", "8", 2, 1024, "", false, "Resources", \
    "Chunks that the rows of one remote scan may fill before its shard is held back.") \
  X("max_parallel_workers", kInt, kPostmaster, "", "8", 0, 63, "", false, "Resources", \
    "Parallel worker processes.") \
  X("max_parallel_workers_per_gather", kInt, kUser, "", "2", 0, 63, "", false, "Resources", \
    "Parallel workers that one Gather may use.") \
  X("io_method", kEnum, kPostmaster, "", "auto", 0, 0, "auto|io_uring|epoll", false, "Resources", \
    "How the io worker waits for sockets; auto: io_uring, or epoll where it is forbidden.") \
  /* --- shards --- */ \
  X("connections_per_server", kInt, kSighup, "", "32", 1, 10000, "", false, "Shards", \
    "Connections to one server, shared by all sessions.") \
  X("connections_per_scan", kInt, kUser, "", "1", 1, 64, "", false, "Shards", \
    "Connections over which one scan of one shard is split by block ranges, under one snapshot.") \
  X("admission_timeout", kInt, kUser, "ms", "60000", 0, 2147483647, "", false, "Shards", \
    "Time that a statement may wait for connections and chunks; 0: without end.") \
  X("spill_delay", kInt, kUser, "ms", "1000", -1, 2147483647, "", false, "Resources", \
    "Rows that a client has not read for so long go to a temporary file while other statements " \
    "wait for the chunks or connections that they hold; -1: never.") \
  X("shard_silence_timeout", kInt, kUser, "ms", "0", 0, 2147483647, "", false, "Shards", \
    "Error if a shard sends nothing for so long while a statement waits for it; 0: never.") \
  X("lend_connections", kBool, kUser, "", "on", 0, 0, "", false, "Shards", \
    "Lets a session that asks single shards keep their connections for a moment and use them " \
    "itself.") \
  /* --- planner --- */ \
  X("enable_pushdown_filter", kBool, kUser, "", "on", 0, 0, "", false, "Planner", \
    "Lets shards evaluate WHERE conditions.") \
  X("enable_pushdown_join", kBool, kUser, "", "on", 0, 0, "", false, "Planner", \
    "Lets shards join what lies on the same shard.") \
  X("enable_pushdown_aggregate", kBool, kUser, "", "on", 0, 0, "", false, "Planner", \
    "Lets shards compute partial aggregates.") \
  X("enable_pushdown_distinct", kBool, kUser, "", "on", 0, 0, "", false, "Planner", \
    "Lets shards remove duplicates.") \
  X("enable_pushdown_sort", kBool, kUser, "", "on", 0, 0, "", false, "Planner", \
    "Lets shards sort.") \
  X("enable_pushdown_limit", kBool, kUser, "", "on", 0, 0, "", false, "Planner", \
    "Lets shards return the first rows only.") \
  X("enable_pass_through", kBool, kUser, "", "on", 0, 0, "", false, "Planner", \
    "Hands rows that need no work here to the client as the shards sent them.") \
  X("enable_completion", kBool, kUser, "", "on", 0, 0, "", false, "Planner", \
    "Lets a shard run what cannot be computed here, over copies of its inputs.") \
  X("parallel_append_claim", kEnum, kUser, "", "chunk", 0, 0, "chunk|plan", false, "Planner", \
    "What a worker of a Parallel Append claims: the next ready chunk, or a whole child.") \
  /* --- statements --- */ \
  X("statement_timeout", kInt, kUser, "ms", "0", 0, 2147483647, "", false, "Statements", \
    "Maximum duration of a statement; 0: none.") \
  X("lock_timeout", kInt, kUser, "ms", "0", 0, 2147483647, "", false, "Statements", \
    "Maximum duration of a wait for a lock on a shard; 0: none.") \
  X("deadlock_timeout", kInt, kSighup, "ms", "1000", 1, 2147483647, "", false, "Statements", \
    "How long statements wait before it is checked whether they wait for each other over several " \
    "servers.") \
  X("idle_in_transaction_session_timeout", kInt, kUser, "ms", "0", 0, 2147483647, "", false, \
    "Statements", "Ends sessions that idle in a transaction for so long; 0: never.") \
  X("idle_session_timeout", kInt, kUser, "ms", "0", 0, 2147483647, "", false, "Statements", \
    "Ends sessions that idle outside a transaction for so long; 0: never.") \
  X("multi_shard_commit", kEnum, kUser, "", "two_phase", 0, 0, "two_phase|one_phase_unsafe", \
    false, \
    "Statements", \
    "How a transaction that wrote several servers commits. one_phase_unsafe: one server after " \
    "the other; a failure in between leaves it committed on some of them.") \
  X("default_transaction_isolation", kEnum, kUser, "", "read committed", 0, 0, \
    "serializable|repeatable read|read committed|read uncommitted", false, "Statements", \
    "Isolation level of new transactions.") \
  X("background_ddl", kBool, kUser, "", "off", 0, 0, "", false, "Live views", \
    "CREATE MATERIALIZED VIEW returns when its job is durable, not when the view is complete.") \
  X("max_backfills", kInt, kSighup, "", "16", 1, 1000, "", false, "Live views", \
    "How many materialized views are built at a time; the others wait, in the order of creation.") \
  X("view_worker_memory", kInt, kSighup, "kB", "262144", 16384, 2147483647, "", false, \
    "Live views", \
    "Memory that the view worker keeps changes, and groups of views being built, in.") \
  X("creating_view_read", kEnum, kUser, "", "wait", 0, 0, "wait|error", false, "Live views", \
    "What a query does that reads a materialized view which is still being created.") \
  X("fresh_reads", kBool, kUser, "", "off", 0, 0, "", false, "Live views", \
    "Queries of materialized views wait until all that was committed before is in them.") \
  X("subscription_retention", kInt, kSighup, "s", "3600", 1, 2147483647, "", false, "Live views", \
    "Time for which changes of a subscribed materialized view are kept, to go on from.") \
  X("default_transaction_read_only", kBool, kUser, "", "off", 0, 0, "", true, "Statements", \
    "Whether new transactions are read-only.") \
  X("default_transaction_deferrable", kBool, kUser, "", "off", 0, 0, "", false, "Statements", \
    "Whether new transactions are deferrable.") \
  X("transaction_isolation", kEnum, kUser, "", "read committed", 0, 0, \
    "serializable|repeatable read|read committed|read uncommitted", false, "Statements", \
    "Isolation level of the current transaction.") \
  X("transaction_read_only", kBool, kUser, "", "off", 0, 0, "", false, "Statements", \
    "Whether the current transaction is read-only.") \
  X("transaction_deferrable", kBool, kUser, "", "off", 0, 0, "", false, "Statements", \
    "Whether the current transaction is deferrable.") \
  X("search_path", kString, kUser, "", "\"$user\", public", 0, 0, "", false, "Statements", \
    "Schemas that are searched for names without a schema.") \
  X("sluice.default_distribution", kEnum, kUser, "", "auto", 0, 0, \
    "auto|hash|even|replicated|none", false, "Statements", \
    "How CREATE TABLE spreads rows where it does not say; none: it makes parents of foreign " \
    "tables.") \
  X("check_function_bodies", kBool, kUser, "", "on", 0, 0, "", false, "Statements", \
    "Whether function bodies are checked; there are no functions here.") \
  X("default_tablespace", kString, kUser, "", "", 0, 0, "", false, "Statements", \
    "Where tables are made; it is the shards' own default.") \
  X("default_table_access_method", kString, kUser, "", "heap", 0, 0, "", false, "Statements", \
    "How tables are stored; it is the shards' own default.") \
  X("temp_tablespaces", kString, kUser, "", "", 0, 0, "", false, "Statements", \
    "Where temporary tables are made; there are none here.") \
  X("default_toast_compression", kEnum, kUser, "", "pglz", 0, 0, "pglz|lz4", false, "Statements", \
    "How large values are compressed; it is the shards' own default.") \
  X("row_security", kBool, kUser, "", "on", 0, 0, "", false, "Statements", \
    "Row security; it is the shards that enforce it.") \
  X("role", kString, kUser, "", "none", 0, 0, "", false, "Statements", "The current role.") \
  X("session_authorization", kString, kUser, "", "", 0, 0, "", true, "Statements", \
    "The session's user.") \
  /* --- client defaults --- */ \
  X("application_name", kString, kUser, "", "", 0, 0, "", true, "Client", \
    "The application's name, shown in pg_stat_activity.") \
  X("client_encoding", kString, kUser, "", "UTF8", 0, 0, "", true, "Client", \
    "The client's character set encoding; always UTF8.") \
  X("client_min_messages", kEnum, kUser, "", "notice", 0, 0, \
    "debug5|debug4|debug3|debug2|debug1|debug|log|notice|warning|error", false, "Client", \
    "Messages below this level are not sent to the client.") \
  X("DateStyle", kString, kUser, "", "ISO, MDY", 0, 0, "", true, "Client", \
    "Output format of dates, and the order of day and month in input.") \
  X("IntervalStyle", kEnum, kUser, "", "postgres", 0, 0, \
    "postgres|postgres_verbose|sql_standard|iso_8601", true, "Client", \
    "Output format of intervals.") \
  X("TimeZone", kString, kUser, "", "UTC", 0, 0, "", true, "Client", "The session's time zone.") \
  X("extra_float_digits", kInt, kUser, "", "1", -15, 3, "", false, "Client", \
    "Digits of floating-point output: above 0 the shortest exact text.") \
  X("bytea_output", kEnum, kUser, "", "hex", 0, 0, "escape|hex", false, "Client", \
    "Output format of bytea.") \
  X("standard_conforming_strings", kBool, kUser, "", "on", 0, 0, "", true, "Client", \
    "Backslashes in '…' are ordinary characters; always on.") \
  X("backslash_quote", kEnum, kUser, "", "safe_encoding", 0, 0, "safe_encoding|on|off", false, \
    "Client", "Whether \\' is allowed in string literals.") \
  X("escape_string_warning", kBool, kUser, "", "on", 0, 0, "", false, "Client", \
    "Warns about backslash escapes in ordinary string literals.") \
  X("lc_messages", kString, kUser, "", "C", 0, 0, "", false, "Client", "Language of messages.") \
  X("lc_monetary", kString, kUser, "", "C", 0, 0, "", false, "Client", \
    "Locale of monetary amounts.") \
  X("lc_numeric", kString, kUser, "", "C", 0, 0, "", false, "Client", "Locale of numbers.") \
  X("lc_time", kString, kUser, "", "C", 0, 0, "", false, "Client", "Locale of dates and times.") \
  X("xmloption", kEnum, kUser, "", "content", 0, 0, "content|document", false, "Client", \
    "Whether XML values are documents or content.") \
  X("synchronize_seqscans", kBool, kUser, "", "on", 0, 0, "", false, "Client", \
    "Accepted for clients that set it; scans run on the shards.") \
  X("synchronous_commit", kEnum, kUser, "", "on", 0, 0, \
    "local|remote_write|remote_apply|on|off", false, "Client", \
    "Accepted for clients that set it; shards commit by their own setting.") \
  /* --- log --- */ \
  X("log_min_messages", kEnum, kSighup, "", "info", 0, 0, \
    "debug5|debug4|debug3|debug2|debug1|debug|info|notice|warning|error|log|fatal|panic", false, \
    "Log", \
    "Messages below this level are not logged.") \
  X("log_min_error_statement", kEnum, kUser, "", "error", 0, 0, \
    "debug5|debug4|debug3|debug2|debug1|debug|info|notice|warning|error|log|fatal|panic", false, \
    "Log", \
    "Statements that fail with an error below this level are not logged.") \
  X("log_min_duration_statement", kInt, kUser, "ms", "-1", -1, 2147483647, "", false, "Log", \
    "Statements that run at least so long are logged; 0: all, -1: none.") \
  X("log_connections", kBool, kSighup, "", "off", 0, 0, "", false, "Log", "Logs connections.") \
  X("log_disconnections", kBool, kSighup, "", "off", 0, 0, "", false, "Log", "Logs session ends.") \
  X("track_activity_query_size", kInt, kInternal, "B", "1024", 1024, 1024, "", false, "Log", \
    "Bytes of a statement that pg_stat_activity shows.") \
  /* --- fixed --- */ \
  X("data_directory", kString, kInternal, "", "", 0, 0, "", false, "Preset", \
    "The data directory.") \
  X("config_file", kString, kInternal, "", "", 0, 0, "", false, "Preset", \
    "The configuration file.") \
  X("server_version", kString, kInternal, "", "15.0 (Sluice)", 0, 0, "", true, "Preset", \
    "The Postgres version whose protocol and SQL are served.") \
  X("server_version_num", kInt, kInternal, "", "150000", 0, 2147483647, "", false, "Preset", \
    "The same as a number.") \
  X("server_encoding", kString, kInternal, "", "UTF8", 0, 0, "", true, "Preset", \
    "The server's character set encoding.") \
  X("integer_datetimes", kBool, kInternal, "", "on", 0, 0, "", true, "Preset", \
    "Dates and times are integers.") \
  X("is_superuser", kBool, kInternal, "", "on", 0, 0, "", true, "Preset", \
    "Whether the user may do everything.") \
  X("in_hot_standby", kBool, kInternal, "", "off", 0, 0, "", true, "Preset", "Always off.") \
  X("max_identifier_length", kInt, kInternal, "", "63", 63, 63, "", false, "Preset", \
    "Bytes of an identifier.") \
  X("max_index_keys", kInt, kInternal, "", "32", 32, 32, "", false, "Preset", "As on the shards.") \
  X("block_size", kInt, kInternal, "", "8192", 8192, 8192, "", false, "Preset", \
    "As on the shards.") \
  X("lc_collate", kString, kInternal, "", "C", 0, 0, "", false, "Preset", "Default text order.") \
  X("lc_ctype", kString, kInternal, "", "C", 0, 0, "", false, "Preset", \
    "Default character classes.") \
  X("wal_level", kString, kInternal, "", "replica", 0, 0, "", false, "Preset", \
    "Nothing is written here.")
// clang-format on

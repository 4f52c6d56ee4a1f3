// Package store stores the state of Claude Ops: proposals and the reservations of their paths, the outbox of notices,
// the pull requests of the local provider, tokens and logins, the sessions of agents, and the audit. It is one SQLite
// file, or tables in a PostgreSQL database. Every change is one transaction that is on disk before the call returns,
// and one process at a time makes one. Each kind of record has a type of its own, a field of Store; they share a
// database.
//
// # SQLite
//
// Several processes may use one folder at the same time (WAL, synchronous=FULL, immediate transactions). They must run
// on one machine: SQLite's WAL needs shared memory, so the folder must not be on a network file system that several
// machines use.
//
// # PostgreSQL
//
// PostgreSQL 14 or newer, for several machines. The URL is one of libpq: postgres://user@host:5432/database, with
// sslmode, search_path, target_session_attrs and so on. The encoding of the database must be UTF8. The connection must
// be to the server itself, or to a pooler that pools sessions: reservations have locks of a session (see locks). Each
// process holds at most four connections, one of them for as long as it lives once it has proposed something.
//
// Tables are made in the first schema of the search_path that exists, "public" unless the URL says otherwise. The first
// start, and the first one of a newer program, need a user that may CREATE there. After that a user that does not own
// the tables does, and then cannot drop the guards of the audit either. It needs, for a schema s:
//
//	GRANT USAGE ON SCHEMA s TO claudeops;
//	GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA s TO claudeops;
//	REVOKE UPDATE, DELETE ON s.audit FROM claudeops;
//	REVOKE INSERT, UPDATE, DELETE ON s.claudeops_versions FROM claudeops;
//
// # The audit
//
// The audit is append-only and a hash chain: each row carries the hash of the row before. The database refuses updates,
// deletes and rows that do not follow the last one. Anyone who can write the file, or owns the tables, can bypass that,
// so VerifyAudit recomputes the chain. To detect that rows were cut off its end, store a head elsewhere and pass it to
// VerifyAudit.
//
// The hash of a row is the lower-case hexadecimal SHA-256 of this text:
//
//	claudeops-audit-v1\n
//	<name>=<length>:<value>\n        for each column in the order below
//
// where length is the number of bytes of value in decimal, value is the column as stored (integers in decimal), and
// the columns are seq, prev_hash, time_us, request_id, door, caller, tier, action, provider, owner, repo, base, branch,
// title, paths, digest, verdicts, outcome, code, message, pr_number, pr_url, duration_us, actor, policy. Where one of
// the last two is empty, its line is left out. seq counts from 1 without
// gaps. prev_hash is the hash of the row before, for the first row 64 zeros. time_us and duration_us are microseconds,
// time_us since 1970-01-01 UTC. paths and verdicts are JSON arrays, actor is an object
// (record.Actor). testdata/audit-vector.txt is such a text.
//
// Text in the columns has every backslash doubled and every NUL and every byte that is not part of valid UTF-8 written
// as \xHH; inside JSON arrays this happens before the JSON escapes. Values beyond their bounds are cut and end in a
// mark with the length and the SHA-256 of the whole.
package store

// Package store is the memory of Claude Ops in one SQLite file: proposals and the reservations of their paths
// (prflow.Ledger), the pull requests of the local provider, and the audit.
//
// Several processes may use one folder at the same time. Every change is one immediate transaction, synced to disk
// before the call returns (WAL, synchronous=FULL). They must run on one machine: SQLite's WAL needs shared memory, so
// the folder must not be on a network file system that several machines use.
//
// # The audit
//
// The audit is append-only and a hash chain: each row carries the hash of the row before. The database refuses updates,
// deletes and rows that do not follow the last one. Whoever can write the file can still go round the database, so
// VerifyAudit recomputes the chain; to notice that rows were cut off its end, keep a head somewhere else and hand it
// in again.
//
// The hash of a row is the lower-case hexadecimal SHA-256 of this text:
//
//	claudeops-audit-v1\n
//	<name>=<length>:<value>\n        for each column in the order below
//
// where length is the number of bytes of value in decimal, value is the column as stored (integers in decimal), and
// the columns are seq, prev_hash, time_us, request_id, door, caller, tier, action, provider, owner, repo, base, branch,
// title, paths, digest, verdicts, outcome, code, message, pr_number, pr_url, duration_us. seq counts from 1 without
// gaps. prev_hash is the hash of the row before, for the first row 64 zeros. time_us and duration_us are microseconds,
// time_us since 1970-01-01 UTC. paths and verdicts are JSON arrays. testdata/audit-vector.txt is such a text.
//
// Text in the columns has every backslash doubled and every NUL and every byte that is not part of valid UTF-8 written
// as \xHH; inside JSON arrays this happens before the JSON escapes. Values beyond their bounds are cut and end in a
// mark with the length and the SHA-256 of the whole.
package store

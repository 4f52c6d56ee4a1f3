// Package crash tests what Claude Ops promises when many processes propose at once, and when processes are killed in
// the middle. It holds tests only: they start copies of the test binary as claudeops on a real bare git repository, and
// need Linux and git. What only looks at the results, or settles them alone, is a claudeops command in the process of
// the tests. docs/explain/crash-safety.md says what they show, and what not.
//
// The records are in SQLite. With the build tag postgres they are in databases that the tests make and drop on the
// PostgreSQL server that CLAUDEOPS_TEST_POSTGRES names, as a URL of a user who may create databases.
package crash

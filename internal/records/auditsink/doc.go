// Package auditsink exports the heads of the audit to where the audit itself cannot reach, and compares the audit with
// what was exported. A head is the number, hash and time of a row, and nothing of what the row is about. Whoever can
// write the records can replace the whole chain of hashes by another one that is sound; they cannot take back the heads
// of the former one.
//
// The audit itself is the queue: what a sink has taken is noted beside it, and what follows is exported by the next
// process that adds a row, by `claudeops serve`, and by `claudeops audit verify`. So nothing is lost when a process is
// killed between a row and its export, or while a sink is away, and a head may reach a sink twice.
package auditsink

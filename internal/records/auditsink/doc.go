// Package auditsink exports the heads of the audit to places outside the records, and compares the audit with the
// exported heads. A head is the number, hash and time of a row, without its contents. Anyone who can write the records
// could replace the whole chain of hashes by another valid one, but cannot take back the exported heads.
//
// The audit itself is the queue: what a sink has taken is noted beside it, and what follows is exported by the next
// process that adds a row, by `claudeops serve`, and by `claudeops audit verify`. So nothing is lost when a process is
// killed between a row and its export, or while a sink is away, and a head may reach a sink twice.
package auditsink

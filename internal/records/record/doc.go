// Package record holds the types of what Claude Ops keeps: attempts with the verdicts of the gates, proposals, what was
// last seen of pull requests, notices, and the queries and reports about them. It knows neither who makes the records
// nor where they are stored.
package record

// Package web is the door for people and programs. It serves the REST API (web/api), the pages (web/dashboard) and the
// stream of changes (web/live) on one address.
//
// Every request passes the same guard (web/guard) in the same order: host, origin, path, who calls, scope. Then its
// handler gives a response or an error, and one function renders every error (problem.go). What handlers have in common
// is in web/handler.
package web

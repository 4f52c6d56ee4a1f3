// Package web is the door for people and programs: REST under /api/v1, its description, sign-in for browsers, health and
// metrics. Handlers decode, call and encode; the rules are prflow's, who may call is access's.
//
// Every request passes the same guards in the same order: host, cross-origin, path, who calls, scope. One table (routes.go)
// makes both the mux and the OpenAPI document, and one function renders every error (problem.go).
package web

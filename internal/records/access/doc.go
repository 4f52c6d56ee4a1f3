// Package access says who may call the server and what: bearer tokens, logins of browsers that came with one or with a
// one-time code, a user name from a trusted proxy, and, where the operator wants it, anybody for reading. It knows no
// HTTP and no database.
package access

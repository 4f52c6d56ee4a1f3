// Package access says who may call the server and what: bearer tokens, sessions of browsers that signed in with one, a
// user name from a trusted proxy, and, on loopback as long as no token exists, anybody. It knows no HTTP and no database.
package access

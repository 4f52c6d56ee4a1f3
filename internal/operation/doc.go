// Package operation says what can be asked of Claude Ops, once for every way in.
package operation

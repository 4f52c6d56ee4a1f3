// Package forge holds what the adapters of GitHub and Gitea have in common: words of refusals, the ways of deleting and
// undoing a branch, of naming people and of asking again, what is remembered between calls, and reads side by side.
//
// It speaks to no forge itself. Where a rule needs one, the adapter gives it a function or fulfils a small interface.
package forge

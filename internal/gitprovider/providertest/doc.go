// Package providertest holds what tests of and around providers need: the contract suite that every adapter must pass
// (Run), and Fake, an in-memory provider that behaves like a real host, faults included.
package providertest

// Package providertest is the contract suite that every adapter of gitprovider.Provider must pass (Run), and what a
// test needs around it.
package providertest
